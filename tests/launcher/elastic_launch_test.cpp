#include "tensorplay/distributed.hpp"
#include "tensorplay/distributed/launcher.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace dist = tensorplay::distributed;
using dist::launcher::ChildFailedError;
using dist::launcher::elastic_launch;
using tensorplay::testing::TemporaryDirectory;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void sum_ranks(const std::string& folder) {
  dist::init_process_group({.backend = "gloo"});
  auto sum = tensorplay::full({1}, dist::get_rank());
  dist::all_reduce(sum);
  std::ofstream(folder + "/" + std::to_string(dist::get_rank())) << sum.item();
  dist::destroy_process_group();
}

void fail_once(const std::string& folder, int rank) {
  std::ofstream(folder + "/" + std::to_string(dist::elastic::restart_count()) + std::getenv("RANK")) << "was here";
  if (dist::elastic::restart_count() == 0 && std::getenv("RANK") == std::to_string(rank)) {
    throw std::runtime_error("the first attempt fails");
  }
}

void fail_always(int rank) {
  if (std::getenv("RANK") == std::to_string(rank)) throw std::runtime_error("no \"data\" here");
  while (true) ::pause();
}

}  // namespace

TEST_CASE("a function of this program runs on all ranks of an elastic launch") {
  const TemporaryDirectory folder;
  const elastic_launch launch({.nproc_per_node = 3, .max_restarts = 0});
  launch(sum_ranks, folder.path());
  for (const char* rank : {"0", "1", "2"}) REQUIRE(read_file(folder.file(rank)) == "3");
}

TEST_CASE("a failed attempt is started again, and the function learns which attempt it is") {
  const TemporaryDirectory folder;
  elastic_launch({.nproc_per_node = 2, .max_restarts = 1})(fail_once, folder.path(), 1);
  for (const char* name : {"01", "10", "11"}) REQUIRE(read_file(folder.file(name)) == "was here");
}

TEST_CASE("a job that fails is told with its root cause") {
  try {
    elastic_launch({.nproc_per_node = 2, .max_restarts = 0})(fail_always, 1);
    FAIL("no error");
  } catch (const ChildFailedError& error) {
    REQUIRE(error.exit_code == 1);
    REQUIRE(error.root_cause.rank == 1);
    REQUIRE(error.root_cause.message == "std::runtime_error: no \"data\" here");
    REQUIRE_THAT(error.what(), Catch::Contains("rank 1") && Catch::Contains("no \"data\" here"));
  }
}

TEST_CASE("any program can be launched, and its exit code comes back") {
  const elastic_launch launch({.nproc_per_node = 2, .max_restarts = 0});
  launch.program("sh", {"-c", "test -n \"$RANK\""});
  try {
    launch.program("sh", {"-c", "exit 7"});
    FAIL("no error");
  } catch (const ChildFailedError& error) {
    REQUIRE(error.exit_code == 7);
  }
}

TEST_CASE("a configuration that tprun refuses, or no tprun at all, is one clear error") {
  REQUIRE_THROWS_WITH(elastic_launch({.options = {"--no-such-option"}}).program("true"),
                      Catch::Contains("exit code 2 before it ran anything"));
  REQUIRE_THROWS_WITH(elastic_launch({.tprun = "/no/such/tprun"}).program("true"),
                      Catch::Contains("/no/such/tprun cannot be started"));
}
