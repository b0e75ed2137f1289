/// Looks for the store in a thread of its own, and tells the loop what it found.
#pragma once

#include "rendezvous/discovery/discovery.hpp"
#include "runtime/base/socket.hpp"

#include <asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tensorplay::agent {

/// Thread rules: make, use and destroy on the loop's thread; callbacks come there.
class StoreFinder {
 public:
  struct Found {
    rendezvous::MeetingPlace place;
    std::vector<base::SocketAddress> addresses;  ///< Of the store; empty when this agent is to host it.
  };
  struct Callbacks {
    std::function<void(Found)> on_found;
    std::function<void(const std::string&)> on_wait;  ///< Why it takes so long, whenever that changes.
    std::function<void(const std::string&)> on_failed;
  };

  /// Begins to look; without a limit for as long as this object lives.
  StoreFinder(asio::io_context& loop, std::shared_ptr<rendezvous::Discovery> discovery, rendezvous::LastSeen last,
              std::optional<std::chrono::milliseconds> limit, Callbacks callbacks);
  ~StoreFinder();  ///< Gives up at once; no callback comes after this.
  StoreFinder(const StoreFinder&) = delete;
  StoreFinder& operator=(const StoreFinder&) = delete;

 private:
  struct Shared;
  std::shared_ptr<rendezvous::Discovery> discovery_;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace tensorplay::agent
