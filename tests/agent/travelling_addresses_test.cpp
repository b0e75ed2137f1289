#include "agent/travelling_addresses.hpp"

#include "tests/support/catch.hpp"

using namespace tensorplay::agent;
using Addresses = std::vector<std::string>;

namespace {

const std::vector<tensorplay::base::InterfaceAddress> kInterfaces = {{"eth0", "10.0.0.5", false, false, false},
                                                                     {"ib0", "172.16.0.5", false, false, false},
                                                                     {"eth0", "fe80::1%eth0", true, false, true},
                                                                     {"lo", "127.0.0.1", false, true, false}};

}  // namespace

TEST_CASE("the address on the way to the store is told before the others, and none twice") {
  REQUIRE(addresses_for_others("", "172.16.0.5", kInterfaces) == Addresses{"172.16.0.5", "10.0.0.5", "127.0.0.1"});
}

TEST_CASE("what --local-addr says is told first") {
  REQUIRE(addresses_for_others("node5.cluster", "10.0.0.5", kInterfaces) ==
          Addresses{"node5.cluster", "10.0.0.5", "172.16.0.5", "127.0.0.1"});
}

TEST_CASE("an address that means something on this host only stays here") {
  REQUIRE(addresses_for_others("", "fe80::1%eth0", kInterfaces) == Addresses{"10.0.0.5", "172.16.0.5", "127.0.0.1"});
}

TEST_CASE("agents that reach the store by loopback are all on this host, and meet there") {
  REQUIRE(addresses_for_others("", "127.0.0.1", kInterfaces).front() == "127.0.0.1");
}
