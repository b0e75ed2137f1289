#pragma once

#include "rendezvous/discovery/etcd_client.hpp"
#include "rendezvous/discovery/interrupt.hpp"

#include <functional>
#include <thread>

namespace tensorplay::rendezvous {

/// A lease in etcd that lives as long as this object: renewed by a thread, and revoked at the end, so that what hangs
/// on it goes at once. Thread rules: made and destroyed by one thread. `on_lost` is called from the lease's own thread,
/// at most once, when etcd has let the lease go: never because etcd does not answer, as it then lets nobody else have
/// it either.
class EtcdLease {
 public:
  EtcdLease(std::vector<EtcdMember> members, EtcdClient::Lease lease, std::chrono::milliseconds renew_each,
            std::function<void(const std::string&)> on_lost);
  ~EtcdLease();
  EtcdLease(const EtcdLease&) = delete;
  EtcdLease& operator=(const EtcdLease&) = delete;

 private:
  void renew();

  std::vector<EtcdMember> members_;
  EtcdClient::Lease lease_;
  std::chrono::milliseconds renew_each_;
  std::function<void(const std::string&)> on_lost_;
  Interrupt interrupt_;
  EtcdClient client_;
  std::thread thread_;
};

}  // namespace tensorplay::rendezvous
