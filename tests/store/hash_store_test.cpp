#include "tensorplay/distributed/hash_store.hpp"

#include "tests/store/store_contract.hpp"

using namespace tensorplay::testing;
using tensorplay::distributed::DistStoreError;
using tensorplay::distributed::HashStore;

TEST_CASE("a hash store keeps the promises of every store") {
  HashStore store;
  const auto other = store.clone();
  SECTION("keys and values") {
    check_keys_and_values(store, *other);
  }
  SECTION("queues") {
    check_queues(store, *other);
  }
  SECTION("timeouts") {
    check_timeouts(store);
  }
  SECTION("waiters, also on the very same object") {
    check_waiters_are_released(store, store);
  }
}

TEST_CASE("a hash store's barrier releases all threads when the last arrives") {
  const auto store = std::make_shared<HashStore>();
  check_barrier({store, store, store, store});
}

TEST_CASE("threads of a hash store lose no addition") {
  const auto store = std::make_shared<HashStore>();
  check_concurrent_adds({store, store, store->clone(), store->clone()}, 500);
}

TEST_CASE("adding to a value that is no number is an error and changes nothing") {
  HashStore store;
  store.set("word", "abc");
  REQUIRE_THROWS_AS(store.add("word", 1), DistStoreError);
  REQUIRE(store.get("word") == "abc");
}

TEST_CASE("a clone's timeout is its own") {
  HashStore store(50ms);
  const auto other = store.clone();
  REQUIRE(other->timeout() == 50ms);
  other->set_timeout(70ms);
  REQUIRE(store.timeout() == 50ms);
}

TEST_CASE("each of many values pushed goes to exactly one of many blocked poppers, while others wait for keys") {
  HashStore store(30s);
  constexpr int kPoppers = 8;
  constexpr int kEach = 100;
  std::vector<int> popped(kPoppers);
  std::jthread bystander([&] { store.wait({"the end"}); });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kPoppers; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) popped[t] += std::stoi(store.queue_pop("work"));
      });
    }
    for (int i = 0; i < kPoppers * kEach; ++i) store.queue_push("work", "1");
  }
  int total = 0;
  for (const int count : popped) total += count;
  REQUIRE(total == kPoppers * kEach);
  store.set("the end", "");
}
