#include "runtime/store/server_host.hpp"

#include "tests/support/catch.hpp"

using tensorplay::store::bind_address_for;

TEST_CASE("only what is loopback everywhere is bound to loopback") {
  REQUIRE(bind_address_for("localhost") == "127.0.0.1");
  REQUIRE(bind_address_for("127.0.0.1") == "127.0.0.1");
  REQUIRE(bind_address_for("::1") == "::1");
  // A host's own name may lead to 127.0.1.1 here and to the network elsewhere.
  REQUIRE(bind_address_for("node1") == "::");
  REQUIRE(bind_address_for("10.0.0.1") == "::");
  REQUIRE(bind_address_for("127.example.org") == "::");
}
