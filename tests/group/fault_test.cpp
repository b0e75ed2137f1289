#include "tensorplay/distributed.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <future>
#include <stdexcept>

using namespace tensorplay;
using namespace tensorplay::distributed;
using namespace std::chrono_literals;
using tensorplay::testing::all_well;
using tensorplay::testing::run_ranks;

TEST_CASE("a rank that leaves ends the others' operation within a second, with an error that names it") {
  const auto started = std::chrono::steady_clock::now();
  const auto endings = run_ranks(4, [](int rank) {
    barrier();
    if (rank == 2) return;  // Destroys its group, which the others count on.
    Tensor mine = ones({100'000});
    all_reduce(mine);
  });
  REQUIRE(std::chrono::steady_clock::now() - started < 2s);
  REQUIRE(endings[2].empty());
  for (const std::size_t rank : {0U, 1U, 3U}) {
    REQUIRE_THAT(endings[rank], Catch::Contains("all_reduce #1: connection closed by") && Catch::Contains("rank 2"));
  }
}

TEST_CASE("a rank that stays away ends the operation at its deadline, by name") {
  const auto endings = run_ranks(3, [](int rank) {
    barrier();
    if (rank == 1) {
      // Alive and connected, but not taking part: it waits until the others have given up.
      Tensor never = zeros({1});
      recv(never, {.src = 0, .tag = 9});
      return;
    }
    Tensor mine = ones({10});
    all_reduce(mine, {.timeout = rank == 0 ? 200ms : 20s});
  });
  REQUIRE_THAT(endings[0], Catch::Contains("timed out after 0.2 s") && Catch::Contains("rank 1 on"));
  REQUIRE_THAT(endings[1], Catch::Contains("connection closed by rank 0"));
  REQUIRE_THAT(endings[2], Catch::Contains("connection closed by"));
}

TEST_CASE("after a failure every later operation says why the group is unusable") {
  const auto endings = run_ranks(2, [](int rank) {
    if (rank == 1) return;
    Tensor mine = ones({1});
    try {
      all_reduce(mine);
    } catch (const DistBackendError&) {
      barrier();
    }
  });
  REQUIRE_THAT(endings[0], Catch::Contains("unusable") && Catch::Contains("connection closed by rank 1"));
}

TEST_CASE("an aborted group ends the wait of every rank") {
  const auto started = std::chrono::steady_clock::now();
  const auto endings = run_ranks(2, [](int rank) {
    barrier();
    if (rank == 0) {
      Tensor mine = ones({10});
      const auto work = all_reduce(mine, {.async_op = true});
      get_default_group()->abort("the test says so");
      work->wait();
    } else {
      Tensor never = ones({10});
      recv(never, {.src = 0});
    }
  });
  REQUIRE(std::chrono::steady_clock::now() - started < 5s);
  REQUIRE_THAT(endings[0], Catch::Contains("the test says so"));
  REQUIRE_THAT(endings[1], Catch::Contains("connection closed by rank 0"));
}

TEST_CASE("a wait with a timeout ends, and the operation goes on") {
  std::promise<void> rank0_gave_up;
  auto gave_up = rank0_gave_up.get_future();
  REQUIRE(run_ranks(2, [&](int rank) {
            Tensor mine = ones({1});
            if (rank == 1) gave_up.wait();
            const auto work = all_reduce(mine, {.async_op = true});
            if (rank == 0) {
              bool ended = false;
              try {
                work->wait(50ms);
              } catch (const DistBackendError&) {
                ended = true;
              }
              rank0_gave_up.set_value();
              if (!ended) throw std::runtime_error("the wait did not end");
            }
            work->wait();
            if (mine.item() != 2) throw std::runtime_error("the operation did not go on");
          }) == all_well(2));
}

TEST_CASE("a group with a dead peer is destroyed in bounded time and can be built again") {
  for (int round = 0; round < 3; ++round) {
    const auto endings = run_ranks(3, [](int rank) {
      if (rank == 0) throw std::runtime_error("rank 0 dies");
      barrier();
    });
    REQUIRE(endings[0] == "rank 0 dies");
    REQUIRE_FALSE(endings[1].empty());
    REQUIRE_FALSE(endings[2].empty());
  }
}

TEST_CASE("nothing that was sent is lost when a rank destroys its group right after its last operation") {
  for (int round = 0; round < 20; ++round) {
    REQUIRE(run_ranks(4, [](int rank) {
              Tensor mine = full({50'000}, rank);
              all_reduce(mine);
              if (mine.select(0, 49'999).item() != 6) throw std::runtime_error("sum");
            }) == all_well(4));
  }
}

TEST_CASE("calls of different sizes, tags or kinds end with an error at the deadline, never with wrong elements") {
  const auto end_both = [](const std::function<void(int)>& body) {
    const auto endings = run_ranks(2, body);
    for (const auto& ending : endings) REQUIRE_FALSE(ending.empty());
    return endings[0] + endings[1];
  };
  constexpr auto kLimit = 200ms;
  using Catch::Contains;
  for (const std::int64_t count : {3, 300'000}) {
    REQUIRE_THAT(end_both([&](int rank) { all_reduce(ones({count + rank}), {.timeout = kLimit}); }),
                 Contains("DETAIL tells"));
  }
  for (const int longer : {0, 1}) {
    end_both([&](int rank) {
      const Tensor mine = ones({rank == longer ? 5 : 3});
      rank == 0 ? send(mine, {.dst = 1, .timeout = kLimit}) : void(recv(mine, {.src = 0, .timeout = kLimit}));
    });
    end_both([&](int rank) {
      // The root's part is over once its message is taken; here nobody takes it.
      broadcast(ones({rank == longer ? 5 : 3}), {.timeout = kLimit});
    });
  }
  end_both([&](int rank) {
    if (rank == 0) all_reduce(ones({3}), {.timeout = kLimit});
    if (rank == 1) broadcast(ones({3}), {.timeout = kLimit});
  });
  REQUIRE_THAT(end_both([&](int rank) {
                 const Tensor mine = ones({3});
                 rank == 0 ? send(mine, {.dst = 1, .timeout = kLimit})
                           : void(recv(mine, {.src = 0, .tag = 1, .timeout = kLimit}));
               }),
               Contains("another size or tag"));
}

TEST_CASE("the error of a group's operation has the global rank beside the group's") {
  const auto endings = run_ranks(3, [](int rank) {
    const auto group = new_group({.ranks = {0, 2}});
    if (rank == 0) all_reduce(ones({1}), {.group = group, .timeout = 200ms});
    if (rank == 2) recv(ones({1}), {.src = 0, .group = group});
  });
  REQUIRE_THAT(endings[0], Catch::Contains("rank 1 (global rank 2) on"));
}
