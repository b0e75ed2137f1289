// Our stores against what another implementation serves: the promises of tests/store on an endpoint or a file that the
// environment names. Run by store_interop_test.py, which starts the other side.
#include "tensorplay/distributed/file_store.hpp"
#include "tensorplay/distributed/prefix_store.hpp"
#include "tensorplay/distributed/tcp_store.hpp"
#include "tests/store/store_contract.hpp"

#include <cstdlib>
#include <stdexcept>

using namespace tensorplay::testing;
using namespace tensorplay::distributed;

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

std::shared_ptr<TCPStore> connect(std::optional<int> world_size = {}) {
  return std::make_shared<TCPStore>(TCPStoreOptions{.host = "127.0.0.1",
                                                    .port = static_cast<std::uint16_t>(std::stoi(variable("TP_PORT"))),
                                                    .world_size = world_size,
                                                    .timeout = 10s});
}

/// Whether the server is told to be one before torch 2.10, which knows fewer requests.
bool is_old_server() {
  return std::getenv("TP_OLD") != nullptr;
}

}  // namespace

// The first case wants the server's table as it began: it compares the whole list of keys.
TEST_CASE("keys and values", "[server]") {
  const auto store = connect();
  check_keys_and_values(*store, *store->clone(), !is_old_server());
}

TEST_CASE("timeouts", "[server]") {
  check_timeouts(*connect());
}

TEST_CASE("waiters", "[server]") {
  const auto store = connect();
  const auto waiting = store->clone();
  check_waiters_are_released(*waiting, *store, {.by_compare_set = std::getenv("TP_LEGACY") == nullptr});
}

TEST_CASE("no lost additions", "[server]") {
  const auto store = connect();
  check_concurrent_adds({store, store->clone(), store->clone()}, 100);
}

TEST_CASE("barrier", "[server]") {
  if (is_old_server()) return;
  const auto store = connect();
  check_barrier({store, store->clone(), store->clone()});
}

TEST_CASE("a barrier under a prefix", "[server]") {
  const auto store = std::make_shared<PrefixStore>("group", connect());
  check_barrier({store, store->clone()});
}

TEST_CASE("the worker count is kept under its hidden key", "[server]") {
  const auto store = connect();
  const auto before = store->num_keys();
  const auto counted = connect(5);
  REQUIRE(store->num_keys() == before + 1);
  if (is_old_server()) return;
  for (const auto& key : store->list_keys()) REQUIRE(key.find("init") == std::string::npos);
}

TEST_CASE("an add to what is no number ends the connection with a reason", "[server]") {
  const auto store = connect();
  store->set("word", "abc");
  REQUIRE_THROWS_WITH(store->add("word", 1), Catch::Matchers::Contains("the value is not a number"));
  REQUIRE_THROWS_AS(store->num_keys(), DistNetworkError);
}

TEST_CASE("large values", "[server]") {
  const auto store = connect();
  const std::string large(8 << 20, 'v');
  const std::string long_key(8000, 'k');
  store->set(long_key, large);
  REQUIRE(store->clone()->get(long_key) == large);
  store->append(long_key, large);
  REQUIRE(store->get(long_key).size() == 2 * large.size());
}

TEST_CASE("queues", "[queues]") {
  const auto store = connect();
  const auto other = store->clone();
  check_queues(*store, *other);
  std::string popped;
  std::jthread popper([&] { popped = other->queue_pop("later"); });
  store->queue_push("later", "v");
  popper.join();
  REQUIRE(popped == "v");
  store->set_timeout(20ms);
  REQUIRE_THROWS_AS(store->queue_pop("never"), StoreTimeoutError);
  REQUIRE(store->queue_len("never") == 0);
}

TEST_CASE("a server without queues ends the connection, and the error says what it may be", "[no_queues]") {
  REQUIRE_THROWS_WITH(connect()->queue_len("q"), Catch::Matchers::Contains("torch's server knows queues since 2.8"));
}

TEST_CASE("a file is shared with the other side, which began it", "[file]") {
  FileStore store({.path = variable("TP_FILE"), .world_size = 2, .timeout = 20s, .attempt = std::nullopt});
  REQUIRE(store.get("from torch") == "hello");
  REQUIRE(store.get("kept") == "new");
  REQUIRE_FALSE(store.check({"deleted"}));
  REQUIRE(store.add("counter", 2) == 5);
  REQUIRE(store.compare_set("claimed", "by torch", "by tprun") == "by tprun");
  const std::string bytes("\0\xff", 2);
  REQUIRE(store.get("bytes") == bytes);
  store.set("answer", bytes);
  store.append("answer", "!");
  REQUIRE(store.delete_key("to delete"));
  store.set("from tprun", "done");
  store.wait({"torch has read"});
}

TEST_CASE("a file that we began is shared with the other side", "[file_first]") {
  FileStore store({.path = variable("TP_FILE"), .world_size = 2, .timeout = 60s, .attempt = std::nullopt});
  store.add("counter", 7);
  store.set("written by tprun", std::string("\0value", 6));
  store.wait({"written by torch"});
  REQUIRE(store.get("counter") == "8");
}
