#include "runtime/store/tcp_store_server.hpp"

#include "runtime/base/host.hpp"
#include "runtime/base/socket.hpp"
#include "runtime/store/server_loop.hpp"

#include <csignal>
#include <map>
#include <mutex>
#include <pthread.h>
#include <thread>

namespace tensorplay::store {

namespace {

base::UniqueFd listener_of(TCPStoreServerOptions& options) {
  if (options.listen_fd) return base::adopt_listener(std::move(options.listen_fd));
  return base::listen_on(options.host, options.port);
}

ServiceOptions service_options_of(TCPStoreServerOptions& options) {
  if (options.user.empty()) options.user = base::current_user();
  return {options.has_agent_table, std::move(options.run_id),        std::move(options.user),
          options.epoch,           std::move(options.authenticator), {}};
}

/// A thread that takes none of the process's signals: those are for whoever waits for them.
template <typename Body>
std::thread start_without_signals(Body body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  // It names itself: naming another thread goes through /proc, which costs whoever reaps this process.
  std::thread thread([body = std::move(body)]() mutable {
    ::pthread_setname_np(::pthread_self(), "tp-store");
    body();
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

struct TCPStoreServer::Impl {
  using Callback = std::shared_ptr<std::function<void()>>;

  Impl(base::UniqueFd listener, ServiceOptions options, std::size_t max_connections)
      : port(base::SocketAddress::of_local_end(listener.get()).port()),
        loop(std::move(listener), std::move(options), max_connections,
             {.on_filled = [this](const std::string& mailbox) { call_back(mailbox); },
              .on_newer_epoch =
                  [this](std::uint64_t epoch) {
                    const std::lock_guard lock(callbacks_mutex);
                    if (const auto callback = newer_epoch) callback(epoch);
                  },
              .on_no_wills =
                  [this] {
                    const std::lock_guard lock(callbacks_mutex);
                    if (const auto callback = no_wills) callback();
                  }}),
        thread(start_without_signals([this] { loop.run(); })) {}

  ~Impl() {
    loop.stop();
    thread.join();
  }

  void call_back(const std::string& mailbox) {
    // Held during the call, so that whoever takes a callback away knows that it is over; recursive, so that a callback
    // may do that itself.
    const std::lock_guard lock(callbacks_mutex);
    const auto found = callbacks.find(mailbox);
    if (found == callbacks.end()) return;
    const Callback callback = found->second;
    (*callback)();
  }

  std::uint16_t port;
  std::recursive_mutex callbacks_mutex;
  std::map<std::string, Callback, std::less<>> callbacks;
  std::function<void(std::uint64_t)> newer_epoch;
  std::function<void()> no_wills;
  ServerLoop loop;
  std::thread thread;  // Last: it runs with all of the above.
};

TCPStoreServer::TCPStoreServer(TCPStoreServerOptions options) {
  auto listener = listener_of(options);
  impl_ = std::make_unique<Impl>(std::move(listener), service_options_of(options), options.max_connections);
}

TCPStoreServer::~TCPStoreServer() = default;

std::uint16_t TCPStoreServer::port() const {
  return impl_->port;
}

void TCPStoreServer::begin_round() {
  impl_->loop.begin_round();
}

void TCPStoreServer::allow_hosts(std::vector<std::string> addresses) {
  impl_->loop.allow_hosts(std::move(addresses));
}

void TCPStoreServer::push(std::string_view queue, std::string_view value) {
  impl_->loop.push(queue, value);
}

std::optional<std::string> TCPStoreServer::try_pop(std::string_view queue) {
  return impl_->loop.try_pop(queue);
}

void TCPStoreServer::on_push(std::string_view queue, std::function<void()> callback) {
  const std::string name(queue);
  const bool is_watched = static_cast<bool>(callback);
  {
    const std::lock_guard lock(impl_->callbacks_mutex);
    if (is_watched) {
      impl_->callbacks[name] = std::make_shared<std::function<void()>>(std::move(callback));
    } else {
      impl_->callbacks.erase(name);
    }
  }
  impl_->loop.watch(name, is_watched);
}

void TCPStoreServer::on_newer_epoch(std::function<void(std::uint64_t epoch)> callback) {
  const std::lock_guard lock(impl_->callbacks_mutex);
  impl_->newer_epoch = std::move(callback);
}

void TCPStoreServer::on_no_wills(std::function<void()> callback) {
  const bool is_watched = static_cast<bool>(callback);
  {
    const std::lock_guard lock(impl_->callbacks_mutex);
    impl_->no_wills = std::move(callback);
  }
  if (is_watched) impl_->loop.watch_for_no_wills();
}

std::optional<std::chrono::steady_clock::time_point> TCPStoreServer::first_use() const {
  return impl_->loop.first_use();
}

std::size_t TCPStoreServer::connection_count() const {
  return impl_->loop.connection_count();
}
std::size_t TCPStoreServer::key_count() const {
  return impl_->loop.key_count();
}
std::size_t TCPStoreServer::waiter_count() const {
  return impl_->loop.waiter_count();
}

}  // namespace tensorplay::store
