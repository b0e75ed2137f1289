#include "tensorplay/distributed/prefix_store.hpp"

#include "tensorplay/distributed/hash_store.hpp"
#include "tests/store/store_contract.hpp"

using namespace tensorplay::testing;
using tensorplay::distributed::HashStore;
using tensorplay::distributed::PrefixStore;

TEST_CASE("a prefix store keeps the promises of every store") {
  const auto hash = std::make_shared<HashStore>();
  const auto store = std::make_shared<PrefixStore>("p", hash);
  SECTION("keys and values") {
    check_keys_and_values(*store, *store->clone());
  }
  SECTION("queues") {
    check_queues(*store, *store->clone());
  }
  SECTION("timeouts") {
    check_timeouts(*store);
  }
  SECTION("waiters") {
    check_waiters_are_released(*store, *store->clone());
  }
  SECTION("barrier") {
    check_barrier({store, store, store});
  }
}

TEST_CASE("prefixes nest with the outermost last, and an empty one still adds its slash") {
  const auto hash = std::make_shared<HashStore>();
  const auto inner = std::make_shared<PrefixStore>("a", hash);
  PrefixStore("b", inner).set("k", "1");
  PrefixStore("", hash).set("k", "2");
  PrefixStore("gloo/", hash).set("k", "3");
  REQUIRE(hash->get("a/b/k") == "1");
  REQUIRE(hash->get("/k") == "2");
  REQUIRE(hash->get("gloo//k") == "3");
}

TEST_CASE("a prefix does not list the keys of a longer prefix that begins the same") {
  const auto hash = std::make_shared<HashStore>();
  hash->set("a/x", "");
  hash->set("ab/y", "");
  REQUIRE(PrefixStore("a", hash).list_keys() == std::vector<std::string>{"x"});
}

TEST_CASE("the store below all prefixes can be reached, and no store cannot be wrapped") {
  const auto hash = std::make_shared<HashStore>();
  const auto inner = std::make_shared<PrefixStore>("a", hash);
  PrefixStore outer("b", inner);
  REQUIRE(outer.underlying_store() == inner);
  REQUIRE(outer.underlying_non_prefix_store() == hash);
  REQUIRE_THROWS_AS(PrefixStore("a", nullptr), std::invalid_argument);
}
