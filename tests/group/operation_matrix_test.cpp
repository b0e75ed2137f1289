#include "tests/support/operation_matrix.hpp"

#include "tests/support/rank_processes.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

using namespace tensorplay;
using namespace tensorplay::testing;
using namespace std::chrono_literals;

namespace {

/// Sanitizers make everything ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsReduced = true;
#else
constexpr bool kIsReduced = false;
#endif

}  // namespace

TEST_CASE("every operation gives what a plain loop gives, for every reduce op, dtype, layout and world size") {
  const int size = GENERATE(1, 2, 3, 4, 5, 8);
  REQUIRE(run_ranks(size, [](int) { run_operation_matrix(kIsReduced); }) == all_well(size));
}

TEST_CASE("the matrix holds with ranks as processes") {
  const int size = GENERATE(2, 3);
  const TemporaryDirectory directory;
  RankProcesses ranks(size, [&](int rank) {
    join_by_file(directory.file("meet"), rank, size, 60s);
    run_operation_matrix(true);
    distributed::destroy_process_group();
  });
  REQUIRE(ranks.endings() == all_well(size));
}

TEST_CASE("the matrix holds with calls compared before they run") {
  distributed::set_debug_level(distributed::DebugLevel::DETAIL);
  REQUIRE(run_ranks(3, [](int) { run_operation_matrix(true); }) == all_well(3));
  distributed::set_debug_level(distributed::DebugLevel::OFF);
}

TEST_CASE("a reduction that has no meaning for a dtype is refused before anything is sent") {
  REQUIRE(run_ranks(2, [](int) { run_refusals(); }) == all_well(2));
}

TEST_CASE("the fake backend takes every call of the matrix without a peer") {
  using namespace tensorplay::distributed;
  World world;
  const World::Binding binding(world);
  init_process_group({.backend = "fake", .world_size = 1000, .rank = 7});
  REQUIRE(get_rank() == 7);
  REQUIRE(get_world_size() == 1000);
  Tensor tensor = ones({4});
  all_reduce(tensor);
  REQUIRE(all_reduce(tensor, {.async_op = true})->is_success());
  const auto group = new_group({.ranks = {1, 7}});
  REQUIRE(get_rank(group) == 1);
  broadcast(tensor, {.src = 1, .group = group});
  barrier();
  monitored_barrier();
  const auto failing = std::make_shared<FakeOptions>();
  failing->failing = {OpType::ALLREDUCE};
  const auto broken = new_group({.pg_options = failing});
  REQUIRE_THROWS_AS(all_reduce(tensor, {.group = broken}), DistBackendError);
  REQUIRE_NOTHROW(barrier({.group = broken}));
  destroy_process_group();
}
