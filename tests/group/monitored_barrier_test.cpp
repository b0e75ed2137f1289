#include "tests/support/rank_checks.hpp"
#include "tests/support/rank_processes.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <mutex>

using namespace tensorplay;
using namespace tensorplay::distributed;
using namespace tensorplay::testing;
using namespace std::chrono_literals;
using Catch::Contains;

TEST_CASE("a monitored barrier that all ranks pass lets go of nobody before all have come") {
  const int size = GENERATE(1, 2, 3, 5);
  std::atomic<int> arrived{0};
  REQUIRE(run_ranks(size, [&](int) {
            for (int round = 1; round <= 5; ++round) {
              ++arrived;
              monitored_barrier({.wait_all_ranks = round % 2 == 0});
              check(arrived >= round * size, "left too early");
            }
            Tensor sum = ones({1});
            all_reduce(sum);
            check(sum.item() == size, "the group is usable");
          }) == all_well(size));
}

// The specification's example: rank 1 of a gloo group, beside another default group, does not come.
TEST_CASE("the first rank that does not come is named in the specification's sentence, within two seconds") {
  const TemporaryDirectory directory;
  RankProcesses ranks(2, [&](int rank) {
    init_process_group(
        {.backend = "fake", .init_method = "file://" + directory.file("meet"), .world_size = 2, .rank = rank});
    const auto gloo = new_group({.backend = "gloo"});
    if (rank != 1) monitored_barrier({.group = gloo, .timeout = 2000ms});
    if (rank == 1) gloo->store()->wait({"told"}, 20s);
    if (rank == 0) gloo->store()->set("told", "");
  });
  const auto text = ranks.ending(0);
  REQUIRE_THAT(text, Contains("Rank 1 failed to pass monitoredBarrier in 2000 ms\n Original exception:\n") &&
                         Contains("[rank 1 on ") && Contains("[127.0.0.1]:"));
}

TEST_CASE("all who came get one verdict: the first culprit, or all of them under wait_all_ranks") {
  const bool waits_for_all = GENERATE(false, true);
  std::vector<std::string> verdicts(5);
  std::atomic<int> told{0};
  const auto endings = run_ranks(5, [&](int rank) {
    barrier();
    if (rank == 1 || rank == 3) {
      while (told < 3) std::this_thread::yield();
      return;
    }
    verdicts[static_cast<std::size_t>(rank)] =
        error_of([&] { monitored_barrier({.timeout = 300ms, .wait_all_ranks = waits_for_all}); });
    ++told;
  });
  REQUIRE(endings == all_well(5));
  REQUIRE_THAT(verdicts[0], Contains("Rank 1 failed to pass monitoredBarrier in 300 ms"));
  REQUIRE((verdicts[0].find("Ranks 1, 3 failed to pass monitoredBarrier in 300 ms") != std::string::npos) ==
          waits_for_all);
  REQUIRE(verdicts[2] == verdicts[0]);
  REQUIRE(verdicts[4] == verdicts[0]);
}

TEST_CASE("the others say so when it is rank 0 that does not come") {
  std::atomic<int> told{0};
  REQUIRE(run_ranks(3, [&](int rank) {
            barrier();
            if (rank == 0) {
              while (told < 2) std::this_thread::yield();
              return;
            }
            const auto text = error_of([] { monitored_barrier({.timeout = 200ms}); });
            ++told;
            check(text.find("Rank 0 failed to pass monitoredBarrier in 200 ms") != std::string::npos, text);
          }) == all_well(3));
}

TEST_CASE("a dead rank is told at once, with what the transport said and its address") {
  const TemporaryDirectory directory;
  RankProcesses ranks(3, [&](int rank) {
    join_by_file(directory.file("meet"), rank, 3, 20s);
    barrier();
    if (rank == 2) ::raise(SIGKILL);
    monitored_barrier({.timeout = 15s});
  });
  REQUIRE(ranks.ending(2) == "killed by signal 9");
  for (const int rank : {0, 1}) {
    const auto text = ranks.ending(rank);
    REQUIRE_THAT(text, Contains("Rank 2 failed to pass monitoredBarrier in 15000 ms\n Original exception:\n") &&
                           Contains("onnection"));
  }
}

TEST_CASE("a backend without monitored_barrier refuses it by name") {
  World world;
  const World::Binding binding(world);
  init_process_group({.backend = "fake", .world_size = 1, .rank = 0});
  REQUIRE_THROWS_AS(monitored_barrier({.timeout = -1ms}), InvalidArgument);
  destroy_process_group();
}
