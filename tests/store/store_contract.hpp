/// What every store promises, checked on any of them: each store's test calls these with its own objects.
#pragma once

#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/store.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

namespace tensorplay::testing {

using distributed::Store;
using namespace std::chrono_literals;

/// Returns once everything that `store` sent has arrived: a set alone is not acknowledged.
inline void settle(Store& store) {
  store.check({});
}

/// `a` and `b` are two handles on the same content. Old servers cannot list their keys.
inline void check_keys_and_values(Store& a, Store& b, bool can_list = true) {
  a.set("k", "v1");
  settle(a);
  REQUIRE(b.get("k") == "v1");
  b.set("k", "v2");
  settle(b);
  REQUIRE(a.get("k") == "v2");
  a.set("", "value of the empty key");
  settle(a);
  REQUIRE(b.get("") == "value of the empty key");
  const std::string any_bytes("\0\xff\n/", 4);
  a.set(any_bytes, any_bytes);
  settle(a);
  REQUIRE(b.get(any_bytes) == any_bytes);
  a.set("empty", "");
  settle(a);
  REQUIRE(b.get("empty").empty());

  REQUIRE(a.add("n", 5) == 5);
  REQUIRE(b.add("n", -7) == -2);
  REQUIRE(a.get("n") == "-2");
  REQUIRE(a.add("zero", 0) == 0);
  REQUIRE(b.get("zero") == "0");

  REQUIRE(a.compare_set("c", "wrong", "x") == "wrong");
  REQUIRE_FALSE(b.check({"c"}));
  REQUIRE(a.compare_set("c", "", "x") == "x");
  REQUIRE(b.compare_set("c", "y", "z") == "x");
  REQUIRE(b.compare_set("c", "x", "z") == "z");

  a.append("log", "one ");
  settle(a);
  b.append("log", "two");
  settle(b);
  REQUIRE(a.get("log") == "one two");

  a.multi_set({"m1", "m2"}, {"1", "2"});
  settle(a);
  REQUIRE(b.multi_get({"m2", "m1", "m2"}) == std::vector<std::string>{"2", "1", "2"});
  REQUIRE_THROWS_AS(a.multi_set({"m1", "m2"}, {"1"}), distributed::DistStoreError);

  REQUIRE(a.check({}));
  REQUIRE(a.check({"k", "n"}));
  REQUIRE_FALSE(a.check({"k", "absent"}));
  a.wait({});
  a.wait({"k", "k", "n"});

  const auto before = a.num_keys();
  REQUIRE(b.delete_key("k"));
  REQUIRE_FALSE(a.delete_key("k"));
  REQUIRE_FALSE(a.check({"k"}));
  REQUIRE(a.num_keys() == before - 1);

  if (!can_list) return;
  auto keys = b.list_keys();
  std::sort(keys.begin(), keys.end());
  std::vector<std::string> expected = {"", any_bytes, "empty", "n", "zero", "c", "log", "m1", "m2"};
  std::sort(expected.begin(), expected.end());
  REQUIRE(keys == expected);
}

inline void check_queues(Store& a, Store& b) {
  REQUIRE(a.queue_len("q") == 0);
  REQUIRE_THROWS_AS(a.queue_pop("q", false), distributed::DistQueueEmptyError);
  a.queue_push("q", "first");
  settle(a);
  b.queue_push("q", "");
  settle(b);
  REQUIRE(b.queue_len("q") == 2);
  REQUIRE(a.check({"q"}));
  REQUIRE(b.queue_pop("q") == "first");
  REQUIRE(a.queue_pop("q", false).empty());
  REQUIRE(a.queue_len("q") == 0);
}

/// Waits end by their timeout, name what was missing, and leave the store usable.
inline void check_timeouts(Store& store) {
  store.set("here", "1");
  REQUIRE_THROWS_WITH(store.wait({"here", "absent"}, 20ms),
                      Catch::Matchers::Contains("wait timeout after 20ms, keys: ") &&
                          Catch::Matchers::Contains("absent") && !Catch::Matchers::Contains("here"));
  REQUIRE_THROWS_AS(store.wait({"absent"}, 0ms), distributed::StoreTimeoutError);
  store.wait({"here"}, 0ms);
  REQUIRE_THROWS_AS(store.wait({"absent"}, -1ms), std::invalid_argument);
  const auto timeout = store.timeout();
  store.set_timeout(30ms);
  REQUIRE(store.timeout() == 30ms);
  REQUIRE_THROWS_WITH(store.get("absent"), Catch::Matchers::Contains("wait timeout after 30ms, keys: "));
  REQUIRE_THROWS_AS(store.set_timeout(-1ms), std::invalid_argument);
  store.set_timeout(timeout);
  REQUIRE(store.get("here") == "1");
}

struct WakingCalls {
  bool by_compare_set = true;  ///< Torch's server without libuv does not wake on it.
};

/// Each way to create a key releases whoever waits for it.
inline void check_waiters_are_released(Store& waiting, Store& acting, WakingCalls calls = {}) {
  const auto released_by = [&](const std::string& key, auto act) {
    CAPTURE(key);
    std::string seen;
    std::jthread waiter([&] { seen = waiting.get(key); });
    act(key);
    waiter.join();
    REQUIRE(seen == "7");
  };
  released_by("by set", [&](const auto& key) { acting.set(key, "7"); });
  released_by("by add", [&](const auto& key) { acting.add(key, 7); });
  if (calls.by_compare_set) released_by("by compare_set", [&](const auto& key) { acting.compare_set(key, "", "7"); });
  released_by("by append", [&](const auto& key) { acting.append(key, "7"); });
  released_by("by multi_set", [&](const auto& key) { acting.multi_set({key}, {"7"}); });
}

/// `handles` threads, one for each, count together; no addition is lost.
inline void check_concurrent_adds(const std::vector<std::shared_ptr<Store>>& handles, int each) {
  {
    std::vector<std::jthread> threads;
    for (const auto& store : handles) {
      threads.emplace_back([&store, each] {
        for (int i = 0; i < each; ++i) store->add("total", 1);
      });
    }
  }
  REQUIRE(handles[0]->add("total", 0) == static_cast<std::int64_t>(handles.size()) * each);
}

inline void check_barrier(const std::vector<std::shared_ptr<Store>>& handles) {
  const auto size = static_cast<std::int64_t>(handles.size());
  std::vector<std::int64_t> arrived_when_released(handles.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < handles.size(); ++i) {
      threads.emplace_back([&, i] {
        handles[i]->add("arrived", 1);
        handles[i]->barrier("all here", size);
        arrived_when_released[i] = handles[i]->add("arrived", 0);
      });
    }
  }
  for (const auto arrived : arrived_when_released) REQUIRE(arrived == size);
  REQUIRE_THROWS_WITH(handles[0]->barrier("nobody else", size, 20ms),
                      Catch::Matchers::Contains("barrier timeout after 20ms, key: nobody else"));
}

}  // namespace tensorplay::testing
