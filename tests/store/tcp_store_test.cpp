#include "tensorplay/distributed/tcp_store.hpp"

#include "runtime/base/socket.hpp"
#include "tests/store/store_contract.hpp"

#include <cstdlib>

using namespace tensorplay::testing;
using namespace tensorplay::distributed;
using Catch::Matchers::Contains;

namespace {

std::shared_ptr<TCPStore> make_host() {
  return std::make_shared<TCPStore>(
      TCPStoreOptions{.host = "127.0.0.1", .port = 0, .world_size = {}, .is_master = true, .timeout = 10s});
}

TCPStoreOptions client_of(const TCPStore& host) {
  return {.host = "127.0.0.1", .port = host.port(), .world_size = {}, .timeout = 10s};
}

/// Sets an environment variable while it lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Environment() { ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("a TCP store keeps the promises of every store") {
  const auto host = make_host();
  TCPStore client(client_of(*host));
  SECTION("keys and values") {
    check_keys_and_values(*host, client);
  }
  SECTION("queues") {
    check_queues(*host, client);
  }
  SECTION("timeouts") {
    check_timeouts(client);
  }
  SECTION("waiters") {
    check_waiters_are_released(client, *host);
  }
  SECTION("barrier") {
    check_barrier({host, host->clone(), client.clone()});
  }
  SECTION("no lost additions") {
    check_concurrent_adds({host, host, host->clone(), client.clone()}, 200);
  }
}

TEST_CASE("a hosting store waits for all, and says how many came when some do not") {
  SECTION("one is missing") {
    REQUIRE_THROWS_WITH(TCPStore({.host = "127.0.0.1", .port = 0, .world_size = 2, .is_master = true, .timeout = 50ms}),
                        Contains("waiting for clients: 1/2 clients joined"));
  }
  SECTION("the host is released by the last") {
    tensorplay::base::UniqueFd listener = tensorplay::base::listen_on("127.0.0.1", 0);
    const auto port = tensorplay::base::SocketAddress::of_local_end(listener.get()).port();
    TCPStoreOptions options{.host = "127.0.0.1", .port = port, .world_size = 2, .timeout = 10s};
    std::jthread client([options] { TCPStore store(options); });
    options.is_master = true;
    options.listen_fd = listener.release();
    TCPStore hosting(options);
    REQUIRE(hosting.port() == port);
    REQUIRE(hosting.num_keys() == 1);
    REQUIRE(hosting.list_keys().empty());
  }
}

TEST_CASE("stores of one process share a server when they agree to") {
  TCPStoreOptions options{
      .host = "127.0.0.1", .port = 0, .world_size = {}, .is_master = true, .timeout = 10s, .multi_tenant = true};
  auto first = std::make_unique<TCPStore>(options);
  options.port = first->port();
  TCPStore second(options);
  second.set("k", "v");
  REQUIRE(first->get("k") == "v");
  first.reset();
  REQUIRE(second.get("k") == "v");
}

TEST_CASE("a port that is taken is an error, unless the launcher's store is what holds it") {
  const auto launcher = make_host();
  TCPStoreOptions options{
      .host = "127.0.0.1", .port = launcher->port(), .world_size = {}, .is_master = true, .timeout = 10s};
  REQUIRE_THROWS_WITH(TCPStore(options), Contains("Address already in use"));
  const Environment flag("TORCHELASTIC_USE_AGENT_STORE", "True");
  {
    const Environment other_port("MASTER_PORT", "1");
    REQUIRE_THROWS_AS(TCPStore(options), SocketError);
  }
  const Environment port("MASTER_PORT", std::to_string(launcher->port()));
  TCPStore store(options);
  REQUIRE_FALSE(store.is_hosting());
  store.set("k", "v");
  REQUIRE(launcher->get("k") == "v");
}

TEST_CASE("a clone keeps the hosted server alive and waits without holding up the original") {
  auto host = make_host();
  const auto clone = host->clone();
  std::jthread waiter([&] { clone->wait({"k"}); });
  host->set("k", "v");
  waiter.join();
  host.reset();
  REQUIRE(clone->get("k") == "v");
}

TEST_CASE("a store whose only connection is in use by a waiting thread says so instead of blocking for ever") {
  const auto host = make_host();
  TCPStore store(client_of(*host));
  std::jthread waiter([&] { store.wait({"k"}); });
  const auto until = Deadline::after(10s);
  bool saw_it = false;
  while (!saw_it && !until.has_passed()) {
    try {
      store.wait({}, 1ms);
    } catch (const StoreTimeoutError& error) {
      saw_it = std::string(error.what()).find("another thread still waits on this store") != std::string::npos;
    }
  }
  host->set("k", "v");
  REQUIRE(saw_it);
}

TEST_CASE("nobody at the endpoint is an error that names it, within the timeout") {
  const auto start = std::chrono::steady_clock::now();
  REQUIRE_THROWS_WITH(TCPStore({.host = "127.0.0.1", .port = 1, .world_size = {}, .timeout = 50ms}),
                      Contains("127.0.0.1") && Contains("1"));
  REQUIRE(std::chrono::steady_clock::now() - start < 5s);
}

TEST_CASE("what cannot work is refused by name") {
  REQUIRE_THROWS_AS(TCPStore({.host = "", .world_size = {}}), std::invalid_argument);
  REQUIRE_THROWS_AS(TCPStore({.host = "127.0.0.1", .port = 0, .world_size = {}}), std::invalid_argument);
  REQUIRE_THROWS_AS(TCPStore({.host = "127.0.0.1", .port = 1, .world_size = 0}), std::invalid_argument);
}

TEST_CASE("a ping tells the round-trip time once everything before it has arrived") {
  const auto host = make_host();
  TCPStore store(client_of(*host));
  store.set("k", "v");
  REQUIRE(store.ping() > 0ns);
  REQUIRE(host->check({"k"}));
}
