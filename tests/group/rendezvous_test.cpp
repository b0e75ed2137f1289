#include "runtime/group/rendezvous.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <catch2/catch.hpp>

using namespace tensorplay::distributed;
using Catch::Contains;

namespace {

const Environment kUnderTprun = {{"RANK", "2"},
                                 {"WORLD_SIZE", "4"},
                                 {"MASTER_ADDR", "10.0.0.1"},
                                 {"MASTER_PORT", "29400"},
                                 {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

}  // namespace

TEST_CASE("env:// takes everything from the environment") {
  const auto plan = plan_rendezvous("env://", -1, -1, kUnderTprun);
  REQUIRE(plan.place() == "10.0.0.1:29400");
  REQUIRE(plan.rank == 2);
  REQUIRE(plan.world_size == 4);
  REQUIRE_FALSE(plan.hosts_store);
}

TEST_CASE("rank and world size may come from the query or the arguments, but not from both") {
  REQUIRE(plan_rendezvous("env://?rank=1&world_size=8", -1, -1, kUnderTprun).world_size == 8);
  REQUIRE(plan_rendezvous("env://", 3, 8, kUnderTprun).rank == 3);
  REQUIRE_THROWS_WITH(plan_rendezvous("tcp://h:1?rank=1&world_size=2", 1, -1, {}), Contains("give it once"));
}

TEST_CASE("a missing variable is named, and an empty one counts as missing") {
  for (const auto* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    Environment without = kUnderTprun;
    without.erase(name);
    REQUIRE_THROWS_WITH(plan_rendezvous("env://", -1, -1, without), Contains(name));
    without[name] = "";
    REQUIRE_THROWS_WITH(plan_rendezvous("env://", -1, -1, without), Contains(name));
  }
}

TEST_CASE("rank 0 hosts the store, unless the agent does and this is the agent's address") {
  Environment environment = kUnderTprun;
  REQUIRE_FALSE(plan_rendezvous("tcp://10.0.0.1:29400", 0, 4, environment).hosts_store);
  REQUIRE(plan_rendezvous("tcp://10.0.0.1:29401", 0, 4, environment).hosts_store);
  REQUIRE_FALSE(plan_rendezvous("tcp://10.0.0.1:29401", 1, 4, environment).hosts_store);
  environment["TORCHELASTIC_USE_AGENT_STORE"] = "true";  // Only the exact word counts.
  REQUIRE(plan_rendezvous("tcp://10.0.0.1:29400", 0, 4, environment).hosts_store);
}

TEST_CASE("tcp:// and file:// say which part is missing or malformed") {
  REQUIRE_THROWS_WITH(plan_rendezvous("tcp://host", 0, 1, {}), Contains("port is missing"));
  REQUIRE_THROWS_WITH(plan_rendezvous("tcp://::1", 0, 1, {}), Contains("port is missing"));
  REQUIRE_THROWS_WITH(plan_rendezvous("tcp://:1", 0, 1, {}), Contains("host is missing"));
  REQUIRE_THROWS_WITH(plan_rendezvous("tcp://h:x", 0, 1, {}), Contains("not an integer"));
  REQUIRE_THROWS_WITH(plan_rendezvous("tcp://h:65536", 0, 1, {}), Contains("0 to 65535"));
  REQUIRE_THROWS_WITH(plan_rendezvous("tcp://h:1", -1, 1, {}), Contains("rank is missing"));
  REQUIRE_THROWS_WITH(plan_rendezvous("tcp://h:1", 0, -1, {}), Contains("world size is missing"));
  REQUIRE_THROWS_WITH(plan_rendezvous("tcp://h:1?rank", 0, 1, {}), Contains("name=value"));
  REQUIRE_THROWS_WITH(plan_rendezvous("file://relative", 0, 1, {}), Contains("absolute"));
  REQUIRE_THROWS_WITH(plan_rendezvous("nfs://x", 0, 1, {}), Contains("no such scheme"));
  REQUIRE_THROWS_WITH(plan_rendezvous("host:1", 0, 1, {}), Contains("no URL"));
  REQUIRE(plan_rendezvous("tcp://[fe80::1]:5", 0, 1, {}).host == "fe80::1");
  REQUIRE(plan_rendezvous("tcp://[fe80::1]:5", 0, 1, {}).place() == "[fe80::1]:5");
  REQUIRE(plan_rendezvous("file:///mnt/nfs/f", 0, 1, {}).path == "/mnt/nfs/f");
}
