#include "rendezvous/rank_assignment.hpp"

#include "tests/support/catch.hpp"

#include <algorithm>

using namespace tensorplay::rendezvous;

namespace {

Joined node(const std::string& name) {
  Joined joined;
  joined.agent = name;
  joined.host = name;
  return joined;
}

}  // namespace

TEST_CASE("host names sort as people count") {
  std::vector<std::string> hosts = {"node10", "node2", "node1-10", "node1-9", "node", "a", "node02", "node1"};
  std::sort(hosts.begin(), hosts.end(), natural_less);
  REQUIRE(hosts == std::vector<std::string>{"a", "node", "node1", "node1-9", "node1-10", "node02", "node2", "node10"});
}

TEST_CASE("the natural order is an order: never both ways, never less than itself") {
  const std::vector<std::string> hosts = {"",   "0",   "00", "1",    "01",  "a",
                                          "a0", "a00", "a1", "a01b", "a1b", "999999999999999999999"};
  for (const auto& a : hosts) {
    REQUIRE_FALSE(natural_less(a, a));
    for (const auto& b : hosts) {
      if (a != b) REQUIRE(natural_less(a, b) != natural_less(b, a));
      for (const auto& c : hosts) {
        if (natural_less(a, b) && natural_less(b, c)) REQUIRE(natural_less(a, c));
      }
    }
  }
}

TEST_CASE("nodes of the last round are chosen before newcomers that came earlier") {
  const auto a = node("a");
  const auto b = node("b");
  const auto c = node("c");
  const auto roster = choose_members({{&a, -1, 0}, {&b, 1, 5}, {&c, 0, 9}}, 2);
  REQUIRE(roster.members.size() == 2);
  REQUIRE(roster.members[0].node == &c);
  REQUIRE(roster.members[1].node == &b);
  REQUIRE(roster.spares.size() == 1);
  REQUIRE(roster.spares[0].node == &a);
}

TEST_CASE("loopback is known in all its spellings") {
  for (const auto* address : {"127.0.0.1", "127.0.1.1", "::1", "localhost", "::ffff:127.0.0.1"}) {
    REQUIRE(is_loopback(address));
  }
  for (const auto* address : {"10.0.0.1", "128.0.0.1", "fe80::1", "n127.0"}) REQUIRE_FALSE(is_loopback(address));
}
