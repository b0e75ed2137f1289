#pragma once

#include "rendezvous/discovery/discovery.hpp"
#include "rendezvous/discovery/etcd_client.hpp"
#include "rendezvous/discovery/etcd_lease.hpp"
#include "rendezvous/discovery/interrupt.hpp"

#include <memory>

namespace tensorplay::rendezvous {

/// Finds the store by etcd: the agent that makes the key `<prefix>/<run id>/host` hosts, for as long as it renews the
/// lease on which the key hangs. The epoch is the revision of etcd in which the key came to be, so it grows whoever
/// hosts.
class EtcdSearch final : public Discovery {
 public:
  /// How long a host may be silent towards etcd before its place is given away.
  static constexpr std::chrono::seconds kLeaseTime{10};

  explicit EtcdSearch(DiscoveryOptions options, std::chrono::seconds lease_time = kLeaseTime);

  MeetingPlace find(const LastSeen& last, distributed::Deadline deadline,
                    const std::function<void(const std::string&)>& say) override;
  void cancel() override { interrupt_.set(); }

 private:
  class Search;

  DiscoveryOptions options_;
  std::chrono::seconds lease_time_;
  Interrupt interrupt_;
  std::unique_ptr<EtcdLease> lease_;  ///< While this agent hosts.
};

}  // namespace tensorplay::rendezvous
