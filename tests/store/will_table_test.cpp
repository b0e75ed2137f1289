#include "runtime/store/will_table.hpp"

#include "tests/support/catch.hpp"

using namespace std::chrono_literals;
using tensorplay::store::WillTable;
using Outcome = WillTable::Outcome;

namespace {

constexpr WillTable::TimePoint kStart{};

/// Wills of 15 s keep-alive and 2 s reconnect time, under a clock that is moved by hand and looks when asked to.
struct Wills {
  WillTable table;
  WillTable::TimePoint now = kStart;

  Outcome leave(const std::string& owner, std::uint64_t connection, std::uint64_t token = 1) {
    return table.leave({owner, token, 15s, 2s, "lost " + owner}, connection, now);
  }

  /// Moves on to `when` as a server does that wakes in time: it looks whenever the table wants it to.
  std::string run_until(std::chrono::milliseconds when) {
    std::string lost;
    while (true) {
      const auto next = table.next_tick();
      const bool is_between = next && *next <= kStart + when;
      now = is_between ? std::max(now, *next) : kStart + when;
      for (const auto& loss : table.tick(now)) lost += (lost.empty() ? "" : ", ") + loss.message;
      if (!is_between) return lost;
    }
  }

  /// Moves on to `when` as a server does that was stopped all the while.
  std::string wake_at(std::chrono::milliseconds when) {
    now = kStart + when;
    std::string lost;
    for (const auto& loss : table.tick(now)) lost += (lost.empty() ? "" : ", ") + loss.message;
    return lost;
  }
};

}  // namespace

TEST_CASE("a node that keeps pinging is never lost") {
  Wills w;
  REQUIRE(w.leave("n1", 1) == Outcome::kHeld);
  for (auto t = 5s; t < 600s; t += 5s) {
    REQUIRE(w.run_until(t).empty());
    REQUIRE(w.table.heard(1, w.now));
  }
}

TEST_CASE("a silent node is lost after its keep-alive time, once") {
  Wills w;
  w.leave("n1", 1);
  REQUIRE(w.run_until(14'999ms).empty());
  REQUIRE(w.run_until(15s) == "lost n1");
  REQUIRE(w.run_until(600s).empty());
  REQUIRE_FALSE(w.table.next_tick());
}

TEST_CASE("a ping counts from when it came") {
  Wills w;
  w.leave("n1", 1);
  w.run_until(10s);
  w.table.heard(1, w.now);
  REQUIRE(w.run_until(24'999ms).empty());
  REQUIRE(w.run_until(25s) == "lost n1");
}

TEST_CASE("a closed connection is a suspicion: a node that is back in time was never lost") {
  Wills w;
  w.leave("n1", 1);
  w.run_until(10s);
  w.table.closed(1, w.now);
  REQUIRE(w.run_until(11'900ms).empty());
  REQUIRE(w.leave("n1", 2) == Outcome::kResumed);
  REQUIRE(w.run_until(20s).empty());
  REQUIRE_FALSE(w.table.heard(1, w.now));
  REQUIRE(w.table.heard(2, w.now));
}

TEST_CASE("a node whose connection closed and that stays away is lost after its reconnect time") {
  Wills w;
  w.leave("n1", 1);
  w.run_until(10s);
  w.table.closed(1, w.now);
  REQUIRE(w.run_until(11'999ms).empty());
  REQUIRE(w.run_until(12s) == "lost n1");
}

TEST_CASE("a node that comes back before its old connection is seen to close loses nothing by that close") {
  Wills w;
  w.leave("n1", 1);
  REQUIRE(w.leave("n1", 2) == Outcome::kResumed);
  w.table.closed(1, w.now);
  REQUIRE(w.run_until(14s).empty());
  REQUIRE(w.table.heard(2, w.now));
}

TEST_CASE("a node that leaves of its own accord is not lost") {
  Wills w;
  w.leave("n1", 1);
  REQUIRE(w.table.cancel(1));
  w.table.closed(1, w.now);
  REQUIRE(w.run_until(600s).empty());
  REQUIRE_FALSE(w.table.cancel(1));
}

TEST_CASE("a guardian's word ends the lease at once, and only with the agent's own token") {
  Wills w;
  w.leave("n1", 1, 77);
  REQUIRE_FALSE(w.table.declare_lost("n1", 78, w.now));
  REQUIRE_FALSE(w.table.declare_lost("n2", 77, w.now));
  REQUIRE(w.table.declare_lost("n1", 77, w.now)->message == "lost n1");
  REQUIRE_FALSE(w.table.declare_lost("n1", 77, w.now));
  REQUIRE(w.run_until(600s).empty());
}

TEST_CASE("whoever was lost stays lost until it comes with another token") {
  Wills w;
  w.leave("n1", 1, 5);
  REQUIRE(w.run_until(15s) == "lost n1");
  REQUIRE_FALSE(w.table.heard(1, w.now));
  REQUIRE(w.leave("n1", 2, 5) == Outcome::kLost);
  REQUIRE(w.leave("n1", 2, 6) == Outcome::kHeld);
}

TEST_CASE("nobody takes over another's name while its will stands") {
  Wills w;
  w.leave("n1", 1, 5);
  REQUIRE(w.leave("n1", 2, 6) == Outcome::kOwnedByAnother);
  REQUIRE(w.table.heard(1, w.now));
  REQUIRE_FALSE(w.table.heard(2, w.now));
}

TEST_CASE("several who fall silent are lost in the order of their deadlines") {
  Wills w;
  w.leave("n2", 2);
  w.run_until(1s);
  w.leave("n1", 1);
  w.leave("n3", 3);
  REQUIRE(w.run_until(60s) == "lost n2, lost n1, lost n3");
}

TEST_CASE("before anybody is lost the connections to be read are named") {
  Wills w;
  w.leave("n1", 1);
  w.leave("n2", 2);
  w.run_until(5s);
  w.table.heard(2, w.now);
  REQUIRE(w.table.due(kStart + 14s).empty());
  REQUIRE(w.table.due(kStart + 15s) == std::vector<std::uint64_t>{1});
  // A ping was found there: it is not lost after all.
  w.now = kStart + 15s;
  w.table.heard(1, w.now);
  REQUIRE(w.table.tick(w.now).empty());
}

TEST_CASE("after a stall of the server every node gets its reconnect time to be heard") {
  Wills w;
  w.leave("n1", 1);
  w.leave("n2", 2);
  REQUIRE(w.wake_at(61s).empty());
  w.table.heard(1, w.now);
  REQUIRE(w.run_until(62'999ms).empty());
  REQUIRE(w.run_until(63s) == "lost n2");
}

TEST_CASE("a stall gives time also to those who were under suspicion when it began") {
  Wills w;
  w.leave("n1", 1);
  w.run_until(1s);
  w.table.closed(1, w.now);
  REQUIRE(w.wake_at(30s).empty());
  REQUIRE(w.run_until(31s).empty());
  REQUIRE(w.leave("n1", 2) == Outcome::kResumed);
}

TEST_CASE("being a little late is no stall") {
  Wills w;
  w.leave("n1", 1);
  REQUIRE(w.wake_at(15'400ms) == "lost n1");
}

TEST_CASE("a loss tells how it came about and since when nothing was heard") {
  Wills w;
  w.leave("silent", 1);
  w.leave("closed", 2);
  w.leave("declared", 3, 7);
  w.run_until(4s);
  w.table.heard(1, w.now);
  w.table.closed(2, w.now);
  const auto declared = w.table.declare_lost("declared", 7, w.now);
  REQUIRE(declared->cause == WillTable::Cause::kDeclared);
  REQUIRE(declared->silence == 4s);
  const auto closed = w.table.tick(kStart + 6s);
  REQUIRE(closed.size() == 1);
  REQUIRE(closed[0].cause == WillTable::Cause::kClosed);
  REQUIRE(closed[0].silence == 6s);
  const auto silent = w.table.tick(kStart + 19s);
  REQUIRE(silent.size() == 1);
  REQUIRE(silent[0].cause == WillTable::Cause::kSilent);
  REQUIRE(silent[0].silence == 15s);
}

TEST_CASE("one connection carries one will") {
  Wills w;
  w.leave("n1", 1);
  w.leave("n2", 1);
  REQUIRE(w.table.size() == 1);
  w.table.closed(1, w.now);
  REQUIRE(w.run_until(60s) == "lost n2");
}

TEST_CASE("the memory of the lost is bounded") {
  Wills w;
  for (std::uint64_t i = 0; i <= WillTable::kMaxLost; ++i) {
    w.leave("n", 1, i);
    w.table.declare_lost("n", i, w.now);
  }
  REQUIRE(w.leave("n", 1, WillTable::kMaxLost) == Outcome::kLost);
  REQUIRE(w.leave("n", 1, 0) == Outcome::kHeld);
}
