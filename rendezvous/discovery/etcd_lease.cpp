#include "rendezvous/discovery/etcd_lease.hpp"

#include "runtime/base/log.hpp"

#include <csignal>
#include <pthread.h>

namespace tensorplay::rendezvous {

namespace {

constexpr std::chrono::seconds kTryAgain{1};
// Whoever ends shall not wait for an etcd that is away: the lease then ends by itself.
constexpr std::chrono::milliseconds kFarewell{500};

}  // namespace

EtcdLease::EtcdLease(std::vector<EtcdMember> members, EtcdClient::Lease lease, std::chrono::milliseconds renew_each,
                     std::function<void(const std::string&)> on_lost)
    : members_(std::move(members)),
      lease_(lease),
      renew_each_(renew_each),
      on_lost_(std::move(on_lost)),
      client_(members_, interrupt_) {
  // The process's signals are for those who wait for them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "tp-etcd");
    try {
      renew();
    } catch (const Cancelled&) {
    } catch (const std::exception& error) {
      base::log::error(std::string("the lease in etcd is not renewed any more: ") + error.what());
    }
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

EtcdLease::~EtcdLease() {
  interrupt_.set();
  thread_.join();
  try {
    const Interrupt none;
    EtcdClient(members_, none, kFarewell).revoke(lease_);
  } catch (const std::exception&) {
    // It ends by itself, somewhat later.
  }
}

void EtcdLease::renew() {
  while (true) {
    auto pause = renew_each_;
    try {
      if (!client_.keep_alive(lease_)) {
        if (on_lost_) on_lost_("etcd has given up this host's lease");
        return;
      }
    } catch (const EtcdUnavailable& error) {
      base::log::write_limited(base::log::Level::kWarning, "etcd lease",
                               std::string("the lease in etcd could not be renewed: ") + error.what());
      pause = kTryAgain;
    }
    interrupt_.wait_until(Interrupt::Clock::now() + pause);
  }
}

}  // namespace tensorplay::rendezvous
