#include "agent/store_finder.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>

#include <csignal>
#include <pthread.h>

namespace tensorplay::agent {
namespace {

StoreFinder::Found find(rendezvous::Discovery& discovery, const rendezvous::LastSeen& last, base::Deadline deadline,
                        const std::function<void(const std::string&)>& say) {
  StoreFinder::Found found{discovery.find(last, deadline, say), {}};
  // Here, where it may block, and not in the loop.
  if (!found.place.is_host) {
    const auto& place = found.place;
    const auto& host = place.address.empty() ? place.endpoint.host : place.address;
    found.addresses = base::SocketAddress::resolve(host, place.endpoint.port);
  }
  return found;
}

}  // namespace

/// What the thread may still want to tell when its finder has gone; then `callbacks` are empty.
struct StoreFinder::Shared {
  Callbacks callbacks;
};

StoreFinder::StoreFinder(asio::io_context& loop, std::shared_ptr<rendezvous::Discovery> discovery,
                         rendezvous::LastSeen last, std::optional<std::chrono::milliseconds> limit, Callbacks callbacks)
    : discovery_(std::move(discovery)), shared_(std::make_shared<Shared>(Shared{std::move(callbacks)})) {
  // Signals are for whoever waits for them, and this thread is not one of those.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([&loop, shared = shared_, discovery = discovery_, last = std::move(last),
                         deadline = limit ? base::Deadline::after(*limit) : base::Deadline::never(),
                         work = asio::make_work_guard(loop)] {
    ::pthread_setname_np(::pthread_self(), "tp-discovery");
    const auto tell = [&loop, &shared](auto member, auto value) {
      asio::post(loop, [shared, member, value = std::move(value)]() mutable {
        if (auto callback = shared->callbacks.*member) callback(std::move(value));
      });
    };
    try {
      auto found = std::make_shared<Found>(
          find(*discovery, last, deadline, [&tell](const std::string& why) { tell(&Callbacks::on_wait, why); }));
      asio::post(loop, [shared, found] {
        if (auto callback = shared->callbacks.on_found) callback(std::move(*found));
      });
    } catch (const rendezvous::Cancelled&) {
      tell(&Callbacks::on_failed, std::string("the search for the store was given up"));  // our finder is gone then
    } catch (const std::exception& error) {
      tell(&Callbacks::on_failed, std::string(error.what()));
    }
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StoreFinder::~StoreFinder() {
  shared_->callbacks = {};
  discovery_->cancel();
  thread_.join();
}

}  // namespace tensorplay::agent
