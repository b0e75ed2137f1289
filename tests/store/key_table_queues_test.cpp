#include "tests/store/called_key_table.hpp"
#include "tests/support/catch.hpp"

using namespace tensorplay::store;

TEST_CASE("queues are first in, first out, and are no keys") {
  CalledKeyTable t;
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
  CalledKeyTable t;
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
  CalledKeyTable t;
  t.push("/q", "a");
  t.wait(1, {"/q", "/k"});
  t.set("/k", "");
  REQUIRE(t.released() == "1");
}

TEST_CASE("the wake of a waiter that goes away without popping passes to the next") {
  CalledKeyTable t;
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
  CalledKeyTable t;
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
  CalledKeyTable t;
  t.wait(1, {"/x"}, WaitKind::kQueuePop);
  t.wait(2, {"/x"}, WaitKind::kGet);
  t.set("/x", "key");
  REQUIRE(t.released() == "2=key");
  t.push("/x", "value");
  REQUIRE(t.released() == "1=value");
}

TEST_CASE("a barrier lets all go with its last arrival, and every later one at once") {
  CalledKeyTable t;
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
  CalledKeyTable t;
  t.wait(9, {"/b"});
  t.arrive(1, "/b", 2);
  REQUIRE(t.released() == "9");
  REQUIRE(t.table.is_waiting(1));
}

TEST_CASE("an arrival that was cancelled stays counted") {
  CalledKeyTable t;
  t.arrive(1, "/b", 2);
  t.cancel(1);
  t.arrive(2, "/b", 2);
  REQUIRE(t.released() == "2");
}

TEST_CASE("a write to a barrier's key lets go whoever is there") {
  CalledKeyTable t;
  t.arrive(1, "/b", 2);
  t.add("/b", 5);
  REQUIRE(t.released() == "1");
}

TEST_CASE("a barrier on something that is no number is refused and changes nothing") {
  CalledKeyTable t;
  t.set("/b", "abc");
  REQUIRE_FALSE(t.arrive(1, "/b", 2));
  REQUIRE(t.get("/b") == "abc");
  REQUIRE_FALSE(t.table.is_waiting(1));
}
