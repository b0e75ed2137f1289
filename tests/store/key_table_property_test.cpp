#include "tests/store/called_key_table.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <map>
#include <random>

using namespace tensorplay::store;

TEST_CASE("after any sequence of calls nobody waits for what is there, and nobody is released who does not wait") {
  const std::vector<std::string> names{"/a", "/b", "/c", "/d"};
  struct Waiting {
    WaitKind kind;
    std::vector<std::string> names;
  };
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    CalledKeyTable t;
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
