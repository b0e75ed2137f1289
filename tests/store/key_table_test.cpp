#include "runtime/store/key_table.hpp"

#include "tests/support/catch.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>

using namespace tensorplay::store;

namespace {

/// The table with calls that read well and releases that are collected.
struct Table {
  KeyTable table;
  Releases releases;

  void set(std::string key, std::string value) { table.set(std::move(key), std::move(value), releases); }
  void append(std::string key, std::string value) { table.append(std::move(key), std::move(value), releases); }
  std::optional<std::int64_t> add(std::string key, std::int64_t delta) {
    return table.add(std::move(key), delta, releases);
  }
  std::string compare_set(std::string key, std::string expected, std::string desired) {
    return *table.compare_set(std::move(key), std::move(expected), std::move(desired), releases);
  }
  void push(std::string queue, std::string value) { table.push(std::move(queue), std::move(value), releases); }
  void wait(WaiterId id, std::vector<std::string> names, WaitKind kind = WaitKind::kKeys) {
    table.wait(id, kind, std::move(names), releases);
  }
  bool arrive(WaiterId id, std::string key, std::int64_t world) {
    return table.arrive(id, std::move(key), world, releases);
  }
  void cancel(WaiterId id) { table.cancel(id, releases); }

  std::string get(std::string_view key) const {
    const auto value = table.get(key);
    return value ? *value : "<missing>";
  }

  /// Who has been released since the last call, in order; a value behind an equals sign.
  std::string released() {
    std::string text;
    for (const auto& release : releases) {
      if (!text.empty()) text += " ";
      text += std::to_string(release.waiter);
      if (release.value) text += "=" + *release.value;
      for (const auto& value : release.values) text += "," + (value ? *value : std::string("<missing>"));
    }
    releases.clear();
    return text;
  }
};

}  // namespace

TEST_CASE("a key can be set, overwritten, read and erased") {
  Table t;
  t.set("/k", "1");
  t.set("/k", std::string("two\0", 4));
  REQUIRE(t.get("/k") == std::string("two\0", 4));
  REQUIRE(t.table.size() == 1);
  REQUIRE(t.table.erase("/k"));
  REQUIRE_FALSE(t.table.erase("/k"));
  REQUIRE(t.get("/k") == "<missing>");
}

TEST_CASE("a counter is decimal text that add understands as PyTorch does") {
  Table t;
  REQUIRE(t.add("/n", 0) == 0);
  REQUIRE(t.get("/n") == "0");
  REQUIRE(t.add("/n", -7) == -7);
  REQUIRE(t.get("/n") == "-7");
  t.set("/n", " 5abc");
  REQUIRE(t.add("/n", 1) == 6);
}

TEST_CASE("an add that has no answer changes nothing") {
  Table t;
  for (const std::string garbage : {"", "abc", "-", "99999999999999999999"}) {
    t.set("/n", garbage);
    REQUIRE_FALSE(t.add("/n", 1));
    REQUIRE(t.get("/n") == garbage);
  }
  t.set("/n", std::to_string(std::numeric_limits<std::int64_t>::max()));
  REQUIRE_FALSE(t.add("/n", 1));
  REQUIRE(t.add("/n", -1) == std::numeric_limits<std::int64_t>::max() - 1);
}

TEST_CASE("compare_set follows the four rows of its table and wakes only when it stores") {
  Table t;
  t.wait(1, {"/k"});
  REQUIRE(t.compare_set("/k", "x", "new") == "x");
  REQUIRE(t.get("/k") == "<missing>");
  REQUIRE(t.released().empty());
  REQUIRE(t.compare_set("/k", "", "first") == "first");
  REQUIRE(t.released() == "1");
  REQUIRE(t.compare_set("/k", "wrong", "second") == "first");
  REQUIRE(t.compare_set("/k", "first", "second") == "second");
  REQUIRE(t.get("/k") == "second");
}

TEST_CASE("append creates, then extends, and does not change a value that a reply still holds") {
  Table t;
  t.append("/k", "a");
  const auto held = t.table.get("/k");
  t.append("/k", "b");
  REQUIRE(t.get("/k") == "ab");
  REQUIRE(*held == "a");
}

TEST_CASE("an add does not change a value that a reply still holds") {
  Table t;
  t.add("/n", 1);
  const auto held = t.table.get("/n");
  t.add("/n", 1);
  REQUIRE(*held == "1");
  REQUIRE(t.get("/n") == "2");
}

TEST_CASE("a wait ends when its last key comes, at once when all are there, and never twice") {
  Table t;
  t.wait(1, {"/a", "/b"});
  t.set("/a", "");
  REQUIRE(t.released().empty());
  t.set("/a", "");
  REQUIRE(t.released().empty());
  t.set("/b", "");
  REQUIRE(t.released() == "1");
  t.set("/b", "");
  REQUIRE(t.released().empty());
  t.wait(2, {"/a", "/b"});
  REQUIRE(t.released() == "2");
  t.wait(3, {});
  REQUIRE(t.released() == "3");
}

TEST_CASE("a key listed twice is waited for once") {
  Table t;
  t.wait(1, {"/a", "/a", "/b", "/a"});
  t.set("/a", "");
  REQUIRE(t.released().empty());
  t.set("/b", "");
  REQUIRE(t.released() == "1");
}

TEST_CASE("a key that came and went stays counted for a wait") {
  Table t;
  t.wait(1, {"/a", "/b"});
  t.set("/a", "");
  t.table.erase("/a");
  t.set("/b", "");
  REQUIRE(t.released() == "1");
}

TEST_CASE("waiters are released in the order in which they came, whatever wrote the key") {
  for (int how = 0; how < 4; ++how) {
    Table t;
    for (WaiterId id : {3, 1, 2}) t.wait(id, {"/k"});
    if (how == 0) t.set("/k", "v");
    if (how == 1) t.append("/k", "v");
    if (how == 2) t.add("/k", 1);
    if (how == 3) t.compare_set("/k", "", "v");
    REQUIRE(t.released() == "3 1 2");
    REQUIRE(t.table.waiter_count() == 0);
  }
}

TEST_CASE("a get that waits is given the value that woke it") {
  Table t;
  t.wait(1, {"/k"}, WaitKind::kGet);
  t.set("/k", "v");
  REQUIRE(t.released() == "1=v");
  t.wait(2, {"/k"}, WaitKind::kGet);
  REQUIRE(t.released() == "2=v");
}

TEST_CASE("a multi-get that waits is answered only when all its keys are there together") {
  Table t;
  t.wait(1, {"/a", "/b"}, WaitKind::kMultiGet);
  t.set("/a", "1");
  t.table.erase("/a");
  t.set("/b", "2");
  REQUIRE(t.released().empty());
  t.set("/a", "3");
  REQUIRE(t.released() == "1,3,2");
}

TEST_CASE("a waiter that has gone is never released and leaves nothing behind") {
  Table t;
  for (int i = 0; i < 1000; ++i) {
    t.wait(1, {"/a", "/b"});
    t.cancel(1);
  }
  REQUIRE(t.table.waiter_count() == 0);
  t.set("/a", "");
  t.set("/b", "");
  REQUIRE(t.released().empty());
}

TEST_CASE("leaving a long line of waiters does not walk it") {
  Table t;
  constexpr WaiterId kWaiters = 100'000;
  for (WaiterId id = 0; id < kWaiters; ++id) t.wait(id, {"/k"});
  for (WaiterId id = kWaiters; id-- > 1;) t.cancel(id);
  t.set("/k", "");
  REQUIRE(t.released() == "0");
}

TEST_CASE("queues are first in, first out, and are no keys") {
  Table t;
  t.push("/q", "1");
  t.push("/q", "2");
  REQUIRE(t.table.queue_length("/q") == 2);
  REQUIRE(t.table.size() == 0);
  REQUIRE(t.get("/q") == "<missing>");
  REQUIRE_FALSE(t.table.erase("/q"));
  REQUIRE(t.table.check({"/q"}));
  auto popped = t.table.pop(1, "/q");
  REQUIRE(popped.length_before == 2);
  REQUIRE(*popped.value == "1");
  REQUIRE(*t.table.pop(1, "/q").value == "2");
  REQUIRE(t.table.pop(1, "/q").length_before == 0);
  REQUIRE_FALSE(t.table.check({"/q"}));
}

TEST_CASE("each push wakes one waiter, and one that has been woken is not counted again") {
  Table t;
  t.wait(1, {"/q"});
  t.wait(2, {"/q"});
  t.push("/q", "a");
  REQUIRE(t.released() == "1");
  t.push("/q", "b");
  REQUIRE(t.released() == "2");
  t.push("/q", "c");
  REQUIRE(t.released().empty());
}

TEST_CASE("a wait on a queue that has a value and on a missing key needs the key alone") {
  Table t;
  t.push("/q", "a");
  t.wait(1, {"/q", "/k"});
  t.set("/k", "");
  REQUIRE(t.released() == "1");
}

TEST_CASE("the wake of a waiter that goes away without popping passes to the next") {
  Table t;
  t.wait(1, {"/q"});
  t.wait(2, {"/q"});
  t.push("/q", "a");
  REQUIRE(t.released() == "1");
  t.cancel(1);
  REQUIRE(t.released() == "2");
  t.table.pop(2, "/q");
  t.cancel(2);
  REQUIRE(t.released().empty());
}

TEST_CASE("a pop that waits takes the value itself, before those who would only be told") {
  Table t;
  t.wait(1, {"/q"});
  t.wait(2, {"/q"}, WaitKind::kQueuePop);
  t.push("/q", "a");
  REQUIRE(t.released() == "2=a");
  REQUIRE(t.table.queue_length("/q") == 0);
  t.push("/q", "b");
  REQUIRE(t.released() == "1");
  t.wait(3, {"/q"}, WaitKind::kQueuePop);
  REQUIRE(t.released() == "3=b");
}

TEST_CASE("a key is no queue for a pop, and a queue no key for a get") {
  Table t;
  t.wait(1, {"/x"}, WaitKind::kQueuePop);
  t.wait(2, {"/x"}, WaitKind::kGet);
  t.set("/x", "key");
  REQUIRE(t.released() == "2=key");
  t.push("/x", "value");
  REQUIRE(t.released() == "1=value");
}

TEST_CASE("a barrier lets all go with its last arrival, and every later one at once") {
  Table t;
  REQUIRE(t.arrive(1, "/b", 3));
  REQUIRE(t.get("/b") == "1");
  REQUIRE(t.arrive(2, "/b", 3));
  REQUIRE(t.released().empty());
  REQUIRE(t.arrive(3, "/b", 3));
  REQUIRE(t.released() == "1 2 3");
  REQUIRE(t.arrive(4, "/b", 3));
  REQUIRE(t.released() == "4");
}

TEST_CASE("an arrival wakes those who wait for the barrier's key, but not those at the barrier") {
  Table t;
  t.wait(9, {"/b"});
  t.arrive(1, "/b", 2);
  REQUIRE(t.released() == "9");
  REQUIRE(t.table.is_waiting(1));
}

TEST_CASE("an arrival that was cancelled stays counted") {
  Table t;
  t.arrive(1, "/b", 2);
  t.cancel(1);
  t.arrive(2, "/b", 2);
  REQUIRE(t.released() == "2");
}

TEST_CASE("a write to a barrier's key lets go whoever is there") {
  Table t;
  t.arrive(1, "/b", 2);
  t.add("/b", 5);
  REQUIRE(t.released() == "1");
}

TEST_CASE("a barrier on something that is no number is refused and changes nothing") {
  Table t;
  t.set("/b", "abc");
  REQUIRE_FALSE(t.arrive(1, "/b", 2));
  REQUIRE(t.get("/b") == "abc");
  REQUIRE_FALSE(t.table.is_waiting(1));
}

TEST_CASE("a cleared table has no keys, queues or waiters") {
  Table t;
  t.set("/k", "");
  t.push("/q", "");
  t.wait(1, {"/x"});
  t.table.clear();
  REQUIRE(t.table.size() == 0);
  REQUIRE(t.table.queue_length("/q") == 0);
  t.set("/x", "");
  REQUIRE(t.released().empty());
}

TEST_CASE("after any sequence of calls nobody waits for what is there, and nobody is released who does not wait") {
  const std::vector<std::string> names{"/a", "/b", "/c", "/d"};
  struct Waiting {
    WaitKind kind;
    std::vector<std::string> names;
  };
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Table t;
    std::map<WaiterId, Waiting> waiting;
    std::size_t pushed = 0;
    std::size_t taken = 0;
    const auto any_name = [&] { return names[random() % names.size()]; };
    const auto account = [&] {
      for (const auto& release : t.releases) {
        INFO("seed " << seed);
        REQUIRE(waiting.erase(release.waiter) == 1);
        if (release.kind == WaitKind::kQueuePop) ++taken;
        if (release.kind == WaitKind::kGet) REQUIRE(release.value);
        for (const auto& value : release.values) REQUIRE(value);
      }
      t.releases.clear();
    };
    for (int step = 0; step < 200; ++step) {
      const WaiterId id = random() % 12;
      switch (random() % 9) {
        case 0:
          t.set(any_name(), "1");
          break;
        case 1:
          t.add(any_name(), 1);
          break;
        case 2:
          t.table.erase(any_name());
          break;
        case 3:
          t.push(any_name(), "v");
          ++pushed;
          break;
        case 4:
          if (!waiting.contains(id) && t.table.pop(id, any_name()).value) ++taken;
          break;
        case 5:
          waiting.erase(id);
          t.cancel(id);
          break;
        case 6:
          if (waiting.contains(id)) break;
          waiting[id] = {WaitKind::kBarrier, {}};
          t.arrive(id, any_name(), 3);
          break;
        default: {
          if (waiting.contains(id)) break;
          const auto kind = static_cast<WaitKind>(random() % 4);
          const bool is_one = kind == WaitKind::kGet || kind == WaitKind::kQueuePop;
          std::vector<std::string> wanted;
          for (std::size_t i = 0; i < (is_one ? 1 : 1 + random() % 3); ++i) wanted.push_back(any_name());
          waiting[id] = {kind, wanted};
          t.wait(id, wanted, kind);
        }
      }
      account();
      for (const auto& [waiter, what] : waiting) {
        REQUIRE(t.table.is_waiting(waiter));
        if (what.kind == WaitKind::kGet) REQUIRE_FALSE(t.table.get(what.names.front()));
        if (what.kind == WaitKind::kQueuePop) REQUIRE(t.table.queue_length(what.names.front()) == 0);
        if (what.kind == WaitKind::kMultiGet) {
          REQUIRE_FALSE(std::all_of(what.names.begin(), what.names.end(),
                                    [&](const std::string& name) { return t.table.get(name) != nullptr; }));
        }
      }
      REQUIRE(t.table.waiter_count() == waiting.size());
    }
    std::size_t left = 0;
    for (const auto& name : names) left += static_cast<std::size_t>(t.table.queue_length(name));
    REQUIRE(pushed == taken + left);
  }
}
