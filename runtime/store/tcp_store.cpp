#include "tensorplay/distributed/tcp_store.hpp"

#include "runtime/store/server_host.hpp"
#include "runtime/store/store_client.hpp"
#include "runtime/store/value_rules.hpp"
#include "tensorplay/distributed/deadline.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace tensorplay::distributed {
namespace {

using store::StoreClient;
using namespace std::chrono_literals;

constexpr auto kLeastAnswerTime = 30s;
constexpr auto kFirstPause = 1ms;
constexpr auto kLastPause = 10ms;
constexpr std::string_view kWorkerCount = "init/";  // no slash in front: no user's key is spelled like that

std::string wire_key(std::string_view key) {
  std::string whole;
  whole.reserve(key.size() + 1);
  return whole.append(1, '/').append(key);
}

std::vector<std::string> wire_keys(const std::vector<std::string>& keys) {
  std::vector<std::string> whole;
  whole.reserve(keys.size());
  for (const auto& key : keys) whole.push_back(wire_key(key));
  return whole;
}

TCPStoreOptions checked(TCPStoreOptions options) {
  if (options.host.empty()) throw InvalidArgument("a TCP store needs a host; got an empty name");
  if (options.port == 0 && !options.is_master) {
    throw InvalidArgument("a TCP store that does not host needs a port; 0 means any free one");
  }
  if (options.world_size && *options.world_size < 1) {
    throw InvalidArgument("a TCP store for " + std::to_string(*options.world_size) + " workers; give 1 or more");
  }
  return options;
}

}  // namespace

struct TCPStore::Impl {
  explicit Impl(TCPStoreOptions given);
  Impl(const Impl& original, Timeout timeout);

  void count_and_await_workers(Deadline deadline);

  /// Runs `request` on the connection, which one thread at a time may use.
  template <typename Request>
  auto locked(Deadline deadline, Request request) {
    std::unique_lock lock(mutex, std::defer_lock);
    if (deadline.is_never()) {
      lock.lock();
    } else if (!lock.try_lock_until(std::max(deadline.when(), Deadline::Clock::now() + kLeastLockTime))) {
      throw StoreTimeoutError(client.endpoint() +
                              ": another thread still waits on this store; give each waiting thread a clone()");
    }
    return request(client);
  }
  /// The same for a request that the server answers at once.
  template <typename Request>
  auto answered(Request request) {
    const auto deadline = Deadline::after(std::max<Timeout>(timeout.load(), kLeastAnswerTime));
    return locked(deadline, [&](StoreClient& connection) { return request(connection, deadline); });
  }

  [[noreturn]] void throw_wait_timeout(Timeout limit, const std::vector<std::string>& keys);

  static constexpr auto kLeastLockTime = 1ms;

  std::shared_ptr<store::TCPStoreServer> server;  ///< Null unless hosting; outlives the connection.
  TCPStoreOptions options;
  std::atomic<Timeout> timeout;
  std::timed_mutex mutex;
  StoreClient client;
};

namespace {

std::uint16_t port_of(const std::shared_ptr<store::TCPStoreServer>& server, const TCPStoreOptions& options) {
  return server != nullptr ? server->port() : options.port;
}

}  // namespace

TCPStore::Impl::Impl(TCPStoreOptions given)
    : server(given.is_master ? store::host_server(given) : nullptr),
      options(std::move(given)),
      timeout(options.timeout),
      client(options.host, port_of(server, options), Deadline::after(options.timeout)) {
  options.port = port_of(server, options);
  if (options.wait_for_workers && options.world_size) count_and_await_workers(Deadline::after(options.timeout));
}

TCPStore::Impl::Impl(const Impl& original, Timeout timeout)
    : server(original.server),
      options(original.options),
      timeout(timeout),
      client(options.host, options.port, Deadline::after(timeout)) {}

void TCPStore::Impl::count_and_await_workers(Deadline deadline) {
  const std::int64_t world_size = *options.world_size;
  std::int64_t here =
      client.add(kWorkerCount, 1, Deadline::after(std::max<Timeout>(options.timeout, kLeastAnswerTime)));
  if (server == nullptr) return;
  std::chrono::milliseconds pause = kFirstPause;
  while (here < world_size) {
    if (deadline.has_passed()) {
      throw StoreTimeoutError(client.endpoint() + ": timed out after " + std::to_string(options.timeout.count()) +
                              " ms waiting for clients: " + std::to_string(here) + "/" + std::to_string(world_size) +
                              " clients joined");
    }
    std::this_thread::sleep_for(std::min<Deadline::Clock::duration>(pause, deadline.remaining()));
    pause = std::min<std::chrono::milliseconds>(pause * 2, kLastPause);
    const auto value = client.get(kWorkerCount, deadline);
    if (value) here = store::parse_counter(*value).value_or(here);
  }
}

void TCPStore::Impl::throw_wait_timeout(Timeout limit, const std::vector<std::string>& keys) {
  std::vector<std::string> missing;
  // Which of several keys? Asking costs a round trip each, but the caller has waited in vain anyway.
  constexpr std::size_t kMostAsked = 256;
  if (keys.size() > 1 && keys.size() <= kMostAsked) {
    const auto deadline = Deadline::after(kLeastAnswerTime);
    for (const auto& key : keys) {
      if (!client.check({key}, deadline)) missing.push_back(key);
    }
  }
  throw StoreTimeoutError(client.endpoint() + ": " +
                          store::wait_timeout_text(limit.count(), missing.empty() ? keys : missing));
}

TCPStore::TCPStore(TCPStoreOptions options) : impl_(std::make_unique<Impl>(checked(std::move(options)))) {}

TCPStore::TCPStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

TCPStore::~TCPStore() = default;

void TCPStore::set(std::string_view key, std::string_view value) {
  impl_->answered([&](StoreClient& client, Deadline deadline) { client.set(wire_key(key), value, deadline); });
}

std::string TCPStore::get(std::string_view key) {
  const Timeout limit = timeout();
  const auto deadline = Deadline::after(limit);
  return impl_->locked(deadline, [&](StoreClient& client) {
    const std::string whole_key = wire_key(key);
    auto value = client.get(whole_key, deadline);
    if (!value) impl_->throw_wait_timeout(limit, {whole_key});
    return std::move(*value);
  });
}

std::int64_t TCPStore::add(std::string_view key, std::int64_t delta) {
  return impl_->answered(
      [&](StoreClient& client, Deadline deadline) { return client.add(wire_key(key), delta, deadline); });
}

std::string TCPStore::compare_set(std::string_view key, std::string_view expected, std::string_view desired) {
  return impl_->answered([&](StoreClient& client, Deadline deadline) {
    return client.compare_set(wire_key(key), expected, desired, deadline);
  });
}

bool TCPStore::check(const std::vector<std::string>& keys) {
  return impl_->answered(
      [&](StoreClient& client, Deadline deadline) { return client.check(wire_keys(keys), deadline); });
}

void TCPStore::wait(const std::vector<std::string>& keys, Timeout timeout) {
  const auto deadline = Deadline::after(timeout);
  impl_->locked(deadline, [&](StoreClient& client) {
    const auto whole_keys = wire_keys(keys);
    if (!client.wait(whole_keys, deadline)) impl_->throw_wait_timeout(timeout, whole_keys);
  });
}

bool TCPStore::delete_key(std::string_view key) {
  return impl_->answered(
      [&](StoreClient& client, Deadline deadline) { return client.delete_key(wire_key(key), deadline); });
}

std::int64_t TCPStore::num_keys() {
  return impl_->answered([](StoreClient& client, Deadline deadline) { return client.num_keys(deadline); });
}

void TCPStore::append(std::string_view key, std::string_view value) {
  impl_->answered([&](StoreClient& client, Deadline deadline) { client.append(wire_key(key), value, deadline); });
}

std::vector<std::string> TCPStore::multi_get(const std::vector<std::string>& keys) {
  const Timeout limit = timeout();
  const auto deadline = Deadline::after(limit);
  return impl_->locked(deadline, [&](StoreClient& client) {
    const auto whole_keys = wire_keys(keys);
    auto values = client.multi_get(whole_keys, deadline);
    if (!values) impl_->throw_wait_timeout(limit, whole_keys);
    return std::move(*values);
  });
}

void TCPStore::multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values) {
  if (keys.size() != values.size()) return Store::multi_set(keys, values);  // throws
  impl_->answered([&](StoreClient& client, Deadline deadline) { client.multi_set(wire_keys(keys), values, deadline); });
}

void TCPStore::queue_push(std::string_view key, std::string_view value) {
  impl_->answered([&](StoreClient& client, Deadline deadline) { client.queue_push(wire_key(key), value, deadline); });
}

std::string TCPStore::queue_pop(std::string_view key, bool block) {
  const std::string whole_key = wire_key(key);
  if (!block) {
    auto value = impl_->answered(
        [&](StoreClient& client, Deadline deadline) { return client.try_queue_pop(whole_key, deadline); });
    if (value) return std::move(*value);
    throw DistQueueEmptyError(impl_->client.endpoint() + ": queue " + whole_key + " is empty");
  }
  const Timeout limit = timeout();
  const auto deadline = Deadline::after(limit);
  return impl_->locked(deadline, [&](StoreClient& client) {
    auto value = client.queue_pop(whole_key, deadline);
    if (!value) impl_->throw_wait_timeout(limit, {whole_key});
    return std::move(*value);
  });
}

std::int64_t TCPStore::queue_len(std::string_view key) {
  return impl_->answered(
      [&](StoreClient& client, Deadline deadline) { return client.queue_len(wire_key(key), deadline); });
}

std::vector<std::string> TCPStore::list_keys() {
  auto keys = impl_->answered([](StoreClient& client, Deadline deadline) { return client.list_keys(deadline); });
  std::erase_if(keys, [](const std::string& key) { return !key.starts_with('/'); });
  for (auto& key : keys) key.erase(0, 1);
  return keys;
}

void TCPStore::barrier(std::string_view key, std::int64_t world_size, Timeout timeout) {
  const auto deadline = Deadline::after(timeout);
  impl_->locked(deadline, [&](StoreClient& client) {
    const std::string whole_key = wire_key(key);
    if (client.barrier(whole_key, world_size, deadline)) return;
    const std::int64_t here = client.add(whole_key, 0, Deadline::after(kLeastAnswerTime));
    throw StoreTimeoutError(client.endpoint() + ": barrier timeout after " + std::to_string(timeout.count()) +
                            "ms, key: " + std::string(key) + ": " + std::to_string(here) + " of " +
                            std::to_string(world_size) + " arrived");
  });
}

std::shared_ptr<Store> TCPStore::clone() {
  return std::shared_ptr<TCPStore>(new TCPStore(std::make_unique<Impl>(*impl_, timeout())));
}

Store::Timeout TCPStore::timeout() const {
  return impl_->timeout.load();
}

void TCPStore::set_timeout(Timeout timeout) {
  (void)Deadline::after(timeout);  // refuses a negative one
  impl_->timeout.store(timeout);
}

const std::string& TCPStore::host() const {
  return impl_->options.host;
}

std::uint16_t TCPStore::port() const {
  return impl_->options.port;
}

bool TCPStore::is_hosting() const {
  return impl_->server != nullptr;
}

std::chrono::nanoseconds TCPStore::ping() {
  return impl_->answered([](StoreClient& client, Deadline deadline) { return client.ping(deadline); });
}

}  // namespace tensorplay::distributed
