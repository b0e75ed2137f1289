/// Calls that differ between ranks, in the debug level DETAIL.
#include "tests/support/rank_checks.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>

using namespace tensorplay;
using namespace tensorplay::distributed;
using namespace tensorplay::testing;
using Catch::Contains;

namespace {

/// Runs with DETAIL, whatever happens.
Endings run_in_detail(int size, const std::function<void(int)>& body) {
  set_debug_level(DebugLevel::DETAIL);
  const auto endings = run_ranks(size, body);
  set_debug_level(DebugLevel::OFF);
  return endings;
}

/// What each of two ranks gets when they call differently; the group has to be usable afterwards.
std::string difference(const std::function<void(int)>& body) {
  std::vector<std::string> texts(2);
  const auto endings = run_in_detail(2, [&](int rank) {
    texts[static_cast<std::size_t>(rank)] = error_of([&] { body(rank); });
    Tensor sum = ones({1});
    all_reduce(sum);
    check(sum.item() == 2, "the group is usable");
  });
  REQUIRE(endings == all_well(2));
  return texts[0] + "\n" + texts[1];
}

}  // namespace

TEST_CASE("two ranks in different operations are told who calls what, and nothing is sent") {
  const auto text = difference([](int rank) {
    if (rank == 0) {
      all_reduce(ones({3}));
    } else {
      broadcast(ones({3}), {.src = 1});
    }
  });
  REQUIRE_THAT(text, Contains("all_reduce #0: the ranks' calls differ: rank 0 calls all_reduce of 3 float32 with SUM; "
                              "rank 1 calls broadcast of 3 float32, root rank 1") &&
                         Contains("\nbroadcast #0:"));
}

TEST_CASE("sizes, dtypes, roots and reduce ops that differ are named") {
  REQUIRE_THAT(difference([](int rank) { all_reduce(ones({3 + rank})); }),
               Contains("rank 0 calls all_reduce of 3 float32") && Contains("rank 1 calls all_reduce of 4 float32"));
  REQUIRE_THAT(difference([](int rank) { all_reduce(ones({3}, rank == 0 ? DType::kInt8 : DType::kInt16)); }),
               Contains("3 int8") && Contains("3 int16"));
  REQUIRE_THAT(difference([](int rank) { broadcast(ones({3}), {.src = rank}); }),
               Contains("root rank 0") && Contains("root rank 1"));
  REQUIRE_THAT(difference([](int rank) { all_reduce(ones({3}), {.op = rank == 0 ? ReduceOp::MIN : ReduceOp::MAX}); }),
               Contains("MIN") && Contains("MAX"));
  REQUIRE_THAT(difference([](int rank) {
                 if (rank == 0) {
                   barrier();
                 } else {
                   reduce(ones({1}));
                 }
               }),
               Contains("rank 0 calls barrier; rank 1 calls reduce"));
}

TEST_CASE("sizes that differ between two ranks are named where each pair has its own") {
  REQUIRE_THAT(difference([](int rank) {
                 const std::int64_t rows = rank == 0 ? 3 : 2;
                 all_to_all_single(zeros({2 + rows}), ones({2 + rows}),
                                   {.output_split_sizes = {2, rows}, .input_split_sizes = {2, rows}});
               }),
               Contains("rank 0 sends 3 elements to rank 1, which expects 2"));
  REQUIRE_THAT(
      difference([](int rank) {
        gather(ones({2 + rank}), rank == 0 ? std::vector<Tensor>{zeros({2}), zeros({2})} : std::vector<Tensor>{});
      }),
      Contains("rank 1 sends 3 elements to rank 0, which expects 2"));
  REQUIRE_THAT(
      difference([](int rank) {
        scatter(ones({2 + rank}), rank == 0 ? std::vector<Tensor>{ones({2}), ones({2})} : std::vector<Tensor>{});
      }),
      Contains("rank 0 sends 2 elements to rank 1, which expects 3"));
  REQUIRE_THAT(difference([](int rank) {
                 std::vector<Tensor> outputs = {zeros({2}), zeros({2})};
                 outputs[static_cast<std::size_t>(rank)] = zeros({2 + rank});
                 all_gather(outputs, ones({2 + rank}));
               }),
               Contains("rank 1 sends 3 elements to rank 0, which expects 2"));
}

TEST_CASE("asynchronous calls are compared in their order") {
  const auto endings = run_in_detail(3, [](int rank) {
    const auto first = all_reduce(ones({2}), {.async_op = true});
    const auto second = all_reduce(ones({rank == 2 ? 5 : 4}), {.async_op = true});
    Tensor last = ones({1});
    const auto third = all_reduce(last, {.async_op = true});
    first->wait();
    third->wait();
    check(last.item() == 3, "the third runs");
    throw DistBackendError(error_of([&] { second->wait(); }));
  });
  for (const auto& ending : endings) {
    REQUIRE_THAT(ending, Contains("all_reduce #1") && Contains("rank 0 and rank 1 call all_reduce of 4 float32") &&
                             Contains("rank 2 calls all_reduce of 5 float32"));
  }
}

TEST_CASE("a rank that does not come at all is still named by its deadline") {
  const auto endings = run_in_detail(2, [](int rank) {
    if (rank == 0) all_reduce(ones({1}), {.timeout = std::chrono::milliseconds(200)});
    if (rank == 1) recv(zeros({1}), {.src = 0});
  });
  REQUIRE_THAT(endings[0], Contains("all_reduce #0, comparing the ranks' calls") && Contains("rank 1"));
}

TEST_CASE("the debug level comes from the environment, where empty means unset") {
  const auto level_for = [](const char* name, const char* value) {
    ::setenv(name, value, 1);
    set_debug_level_from_env();
    ::unsetenv(name);
    return get_debug_level();
  };
  REQUIRE(level_for("TORCH_DISTRIBUTED_DEBUG", "detail") == DebugLevel::DETAIL);
  REQUIRE(level_for("TP_DISTRIBUTED_DEBUG", "INFO") == DebugLevel::INFO);
  REQUIRE(level_for("TORCH_DISTRIBUTED_DEBUG", "") == DebugLevel::OFF);
  REQUIRE_THROWS_WITH(level_for("TORCH_DISTRIBUTED_DEBUG", "LOUD"), Contains("OFF, INFO or DETAIL"));
  ::unsetenv("TORCH_DISTRIBUTED_DEBUG");
  set_debug_level(DebugLevel::OFF);
}
