#include "runtime/backend/gloo/interface.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <catch2/catch.hpp>

using namespace tensorplay;
using namespace tensorplay::distributed;

namespace {

const std::vector<base::InterfaceAddress> kAddresses = {
    {"eth0", "10.0.0.5", false, false, false},
    {"ib0", "192.168.7.5", false, false, false},
    {"docker0", "172.17.0.1", false, false, false},
    {"lo", "127.0.0.1", false, true, false},
    {"lo", "::1", true, true, false},
};

}  // namespace

TEST_CASE("ranks of one host meet on loopback") {
  REQUIRE(choose_address(kAddresses, "", true, "") == "127.0.0.1");
}

TEST_CASE("ranks of several hosts meet on the address from which the store is reached, else on the best one") {
  REQUIRE(choose_address(kAddresses, "", false, "192.168.7.5") == "192.168.7.5");
  REQUIRE(choose_address(kAddresses, "", false, "127.0.0.1") == "10.0.0.5");
  REQUIRE(choose_address(kAddresses, "", false, "") == "10.0.0.5");
}

TEST_CASE("the first named interface that is up is taken, and ^ excludes") {
  REQUIRE(choose_address(kAddresses, "ib1,ib0,eth0", true, "") == "192.168.7.5");
  REQUIRE(choose_address(kAddresses, "^eth0,docker0", false, "") == "192.168.7.5");
}

TEST_CASE("loopback is never told to another host, not even when it is asked for") {
  REQUIRE_THROWS_WITH(choose_address(kAddresses, "lo", false, ""),
                      Catch::Contains("GLOO_SOCKET_IFNAME=lo") && Catch::Contains("eth0 (10.0.0.5)"));
  REQUIRE_THROWS_AS(choose_address({kAddresses[3]}, "", false, ""), DistBackendError);
}
