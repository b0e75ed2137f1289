#include "rendezvous/discovery/recorded_host.hpp"

#include "rendezvous/discovery/name_lookup.hpp"
#include "rendezvous/discovery/store_probe.hpp"
#include "runtime/base/host.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tensorplay::rendezvous {

using base::SocketAddress;
using distributed::Deadline;
using distributed::SocketError;
using Clock = Deadline::Clock;

namespace {

constexpr std::chrono::seconds kLocalAddressTime{5};

/// Those that lead anywhere from here.
std::vector<SocketAddress> usable_addresses(const HostRecord& record) {
  auto texts = record.addresses;
  if (record.identity == base::host_identity()) texts.insert(texts.begin(), "127.0.0.1");
  std::vector<SocketAddress> addresses;
  for (const auto& text : texts) {
    try {
      const auto more = SocketAddress::resolve(text, record.port);
      addresses.insert(addresses.end(), more.begin(), more.end());
    } catch (const SocketError&) {
      // A zone of that host's own, say.
    }
  }
  return addresses;
}

Finding greet(const std::vector<SocketAddress>& addresses, const GreetingOptions& options, const Interrupt& interrupt,
              Deadline deadline, std::string& peer) {
  StoreProbe probe(addresses, options, Clock::now());
  while (!probe.is_over() && !deadline.has_passed()) {
    std::vector<pollfd> waits;
    probe.add_waits(waits);
    auto until = probe.next_timer();
    if (!deadline.is_never()) until = until ? std::min(*until, deadline.when()) : deadline.when();
    interrupt.wait(waits, until);
    probe.advance(Clock::now());
  }
  peer = probe.peer();
  return probe.is_over() ? probe.finding() : Finding{Answer::kSilent, 0, "has not answered yet"};
}

}  // namespace

Meeting greet_recorded(const HostRecord& record, std::uint64_t epoch, const GreetingOptions& options,
                       const Interrupt& interrupt, Deadline deadline) {
  auto left = usable_addresses(record);
  Meeting meeting;
  meeting.finding = {Answer::kUnreachable, 0, "it has no address that leads there"};
  while (!left.empty()) {
    meeting.finding = greet(left, options, interrupt, deadline, meeting.address);
    const auto& found = meeting.finding;
    const bool is_other = found.answer == Answer::kStranger || found.answer == Answer::kForeign ||
                          (found.answer == Answer::kStore && found.epoch != epoch);
    if (!is_other) break;
    meeting.finding = {Answer::kUnreachable, 0, std::strerror(ECONNREFUSED)};
    std::erase_if(left, [&](const auto& address) { return address.host() == meeting.address; });
  }
  auto& finding = meeting.finding;
  meeting.is_refused = finding.answer == Answer::kUnreachable && finding.reason == std::strerror(ECONNREFUSED);
  finding.reason = finding.answer == Answer::kUnreachable ? "connecting to " + name_of(record) + ": " + finding.reason
                                                          : name_of(record) + " " + finding.reason;
  return meeting;
}

std::vector<std::string> addresses_for_others(const DiscoveryOptions& options, const Interrupt& interrupt) {
  std::vector<std::string> addresses;
  if (options.is_alone) return addresses;
  const auto add = [&](const std::string& address) {
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) addresses.push_back(address);
  };
  if (!options.local_addr.empty()) {
    const NameLookup lookup(options.local_addr, 0);
    const auto until = Clock::now() + kLocalAddressTime;
    std::vector<pollfd> waits{{lookup.fd(), POLLIN, 0}};
    while (!lookup.is_done() && Clock::now() < until) interrupt.wait(waits, until);
    if (lookup.is_done()) {
      for (const auto& address : lookup.addresses()) {
        if (!address.is_loopback()) add(address.host());
      }
    }
  }
  for (const auto& entry : base::interface_addresses()) {
    // Loopback leads elsewhere on every host, and the zone of a link-local address is this host's own.
    if (!entry.is_loopback && !(entry.is_ipv6 && entry.is_link_local)) add(entry.address);
  }
  return addresses;
}

base::UniqueFd listen_for_others(const DiscoveryOptions& options) {
  try {
    return base::listen_on(options.is_alone ? "127.0.0.1" : "::", 0);
  } catch (const SocketError& error) {
    throw distributed::DistStoreError(error.what());
  }
}

std::string name_of(const HostRecord& record) {
  return record.host + " (port " + std::to_string(record.port) + ")";
}

}  // namespace tensorplay::rendezvous
