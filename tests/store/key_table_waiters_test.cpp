#include "tests/store/called_key_table.hpp"
#include "tests/support/catch.hpp"

using namespace tensorplay::store;

TEST_CASE("a wait ends when its last key comes, at once when all are there, and never twice") {
  CalledKeyTable t;
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
  CalledKeyTable t;
  t.wait(1, {"/a", "/a", "/b", "/a"});
  t.set("/a", "");
  REQUIRE(t.released().empty());
  t.set("/b", "");
  REQUIRE(t.released() == "1");
}

TEST_CASE("a key that came and went stays counted for a wait") {
  CalledKeyTable t;
  t.wait(1, {"/a", "/b"});
  t.set("/a", "");
  t.table.erase("/a");
  t.set("/b", "");
  REQUIRE(t.released() == "1");
}

TEST_CASE("waiters are released in the order in which they came, whatever wrote the key") {
  for (int how = 0; how < 4; ++how) {
    CalledKeyTable t;
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
  CalledKeyTable t;
  t.wait(1, {"/k"}, WaitKind::kGet);
  t.set("/k", "v");
  REQUIRE(t.released() == "1=v");
  t.wait(2, {"/k"}, WaitKind::kGet);
  REQUIRE(t.released() == "2=v");
}

TEST_CASE("a multi-get that waits is answered only when all its keys are there together") {
  CalledKeyTable t;
  t.wait(1, {"/a", "/b"}, WaitKind::kMultiGet);
  t.set("/a", "1");
  t.table.erase("/a");
  t.set("/b", "2");
  REQUIRE(t.released().empty());
  t.set("/a", "3");
  REQUIRE(t.released() == "1,3,2");
}

TEST_CASE("a waiter that has gone is never released and leaves nothing behind") {
  CalledKeyTable t;
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
  CalledKeyTable t;
  constexpr WaiterId kWaiters = 100'000;
  for (WaiterId id = 0; id < kWaiters; ++id) t.wait(id, {"/k"});
  for (WaiterId id = kWaiters; id-- > 1;) t.cancel(id);
  t.set("/k", "");
  REQUIRE(t.released() == "0");
}
