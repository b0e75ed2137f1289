#include "tests/store/called_key_table.hpp"
#include "tests/support/catch.hpp"

#include <limits>

using namespace tensorplay::store;

TEST_CASE("a key can be set, overwritten, read and erased") {
  CalledKeyTable t;
  t.set("/k", "1");
  t.set("/k", std::string("two\0", 4));
  REQUIRE(t.get("/k") == std::string("two\0", 4));
  REQUIRE(t.table.size() == 1);
  REQUIRE(t.table.erase("/k"));
  REQUIRE_FALSE(t.table.erase("/k"));
  REQUIRE(t.get("/k") == "<missing>");
}

TEST_CASE("a counter is decimal text that add understands as PyTorch does") {
  CalledKeyTable t;
  REQUIRE(t.add("/n", 0) == 0);
  REQUIRE(t.get("/n") == "0");
  REQUIRE(t.add("/n", -7) == -7);
  REQUIRE(t.get("/n") == "-7");
  t.set("/n", " 5abc");
  REQUIRE(t.add("/n", 1) == 6);
}

TEST_CASE("an add that has no answer changes nothing") {
  CalledKeyTable t;
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
  CalledKeyTable t;
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
  CalledKeyTable t;
  t.append("/k", "a");
  const auto held = t.table.get("/k");
  t.append("/k", "b");
  REQUIRE(t.get("/k") == "ab");
  REQUIRE(*held == "a");
}

TEST_CASE("an add does not change a value that a reply still holds") {
  CalledKeyTable t;
  t.add("/n", 1);
  const auto held = t.table.get("/n");
  t.add("/n", 1);
  REQUIRE(*held == "1");
  REQUIRE(t.get("/n") == "2");
}

TEST_CASE("a cleared table has no keys, queues or waiters") {
  CalledKeyTable t;
  t.set("/k", "");
  t.push("/q", "");
  t.wait(1, {"/x"});
  t.table.clear();
  REQUIRE(t.table.size() == 0);
  REQUIRE(t.table.queue_length("/q") == 0);
  t.set("/x", "");
  REQUIRE(t.released().empty());
}
