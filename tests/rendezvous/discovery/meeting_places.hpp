/// What the tests of the searches do with a Discovery and with what it finds.
#pragma once

#include "rendezvous/discovery/discovery.hpp"
#include "runtime/store/tcp_store_server.hpp"
#include "tests/support/catch.hpp"

#include <chrono>
#include <memory>

namespace tensorplay::testing {

inline rendezvous::MeetingPlace find(
    rendezvous::Discovery& discovery, const rendezvous::LastSeen& last = {},
    distributed::Deadline deadline = distributed::Deadline::after(std::chrono::seconds(30))) {
  return discovery.find(last, deadline, {});
}

/// The store that a host serves where it was told to: run job7, user ada.
inline std::unique_ptr<store::TCPStoreServer> serve(rendezvous::MeetingPlace place) {
  REQUIRE(place.is_host);
  store::TCPStoreServerOptions options;
  options.listen_fd = std::move(place.listen_fd);
  options.has_agent_table = true;
  options.run_id = "job7";
  options.user = "ada";
  options.epoch = place.epoch;
  return std::make_unique<store::TCPStoreServer>(std::move(options));
}

}  // namespace tensorplay::testing
