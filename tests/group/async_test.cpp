/// Works, futures, coalesced blocks.
#include "tests/support/rank_checks.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <future>

using namespace tensorplay;
using namespace tensorplay::distributed;
using namespace tensorplay::testing;
using namespace std::chrono_literals;

TEST_CASE("every collective can be asynchronous, and its future holds what it filled") {
  REQUIRE(run_ranks(3, [](int rank) {
            std::vector<Tensor> list = {zeros({2}), zeros({2}), zeros({2})};
            const std::vector<Tensor> given = {ones({2}), ones({2}), ones({2})};
            const Tensor mine = full({2}, 1);
            std::vector<WorkPtr> works = {
                all_reduce(ones({2}), {.async_op = true}),
                all_reduce_coalesced({ones({2}), ones({3})}, {.async_op = true}),
                broadcast(ones({2}), {.async_op = true}),
                reduce(ones({2}), {.async_op = true}),
                all_gather(list, mine, {.async_op = true}),
                all_gather_coalesced({list, list}, {mine, mine}, {.async_op = true}),
                all_gather_single(zeros({6}), mine, {.async_op = true}),
                gather(mine, rank == 0 ? list : std::vector<Tensor>{}, {.async_op = true}),
                gather_single(mine, rank == 0 ? zeros({6}) : Tensor(), {.async_op = true}),
                scatter(zeros({2}), rank == 0 ? given : std::vector<Tensor>{}, {.async_op = true}),
                reduce_scatter(zeros({2}), given, {.async_op = true}),
                reduce_scatter_single(zeros({2}), ones({6}), {.async_op = true}),
                all_to_all(list, given, {.async_op = true}),
                all_to_all_single(zeros({6}), ones({6}), {.async_op = true}),
                barrier({.async_op = true}),
            };
            for (const auto& work : works) {
              work->wait();
              check(work->is_completed() && work->is_success() && !work->exception(), work->name());
              check(work->get_future()->is_completed(), work->name());
            }
            check_equal(works[0]->result().at(0), full({2}, 3), "all_reduce");
            check(works[1]->result().size() == 2, "coalesced");
            check(works[14]->result().empty(), "barrier");
            refused([&] { works[0]->source_rank(); });
          }) == all_well(3));
}

TEST_CASE("the result of an operation that is not complete is refused, and its wait may be bounded") {
  std::promise<void> looked;
  auto has_looked = looked.get_future().share();
  REQUIRE(run_ranks(2, [&](int rank) {
            if (rank == 1) has_looked.wait();
            const auto work = all_reduce(ones({1}), {.async_op = true});
            if (rank == 0) {
              check(!work->is_completed() && !work->is_success(), "running");
              refused([&] { work->result(); });
              error_of([&] { work->wait(20ms); });
              looked.set_value();
            }
            work->wait();
            check(work->result().at(0).item() == 2, "result");
          }) == all_well(2));
}

TEST_CASE("an error of an asynchronous operation comes out of wait, exception and the future") {
  const auto endings = run_ranks(2, [](int rank) {
    if (rank == 1) return;
    const auto work = all_reduce(ones({1}), {.async_op = true});
    const auto next = work->get_future()->then([](const Future& done) { return done.value(); });
    const auto text = error_of([&] { work->wait(); });
    check(work->is_completed() && !work->is_success() && work->exception() != nullptr, "failed");
    check(error_of([&] { next->wait(); }) == text, "the future's");
    throw DistBackendError(text);
  });
  REQUIRE_THAT(endings[0], Catch::Contains("rank 1"));
}

TEST_CASE("a coalesced block starts its collectives together and waits once") {
  REQUIRE(run_ranks(3, [](int rank) {
            std::vector<Tensor> tensors;
            for (int i = 0; i < 10; ++i) tensors.push_back(full({i + 1}, rank));
            Tensor gathered = zeros({3});
            const auto work = coalesced(
                [&] {
                  for (const auto& tensor : tensors) check(all_reduce(tensor) == nullptr, "kept by the block");
                  all_gather_single(gathered, full({1}, rank));
                },
                {.async_op = true});
            work->wait();
            for (int i = 0; i < 10; ++i) check_equal(tensors[static_cast<std::size_t>(i)], full({i + 1}, 3), "sum");
            check_equal(gathered, tensor<float>({0, 1, 2}), "gathered");
            check(coalesced([&] { all_reduce(tensors[0]); }) == nullptr, "synchronous");
            check(tensors[0].item() == 9, "sum of sums");
          }) == all_well(3));
}

TEST_CASE("an exception inside a coalesced block leaves the group usable") {
  REQUIRE(run_ranks(2, [](int) {
            Tensor first = ones({1});
            try {
              coalesced([&] {
                all_reduce(first);
                throw std::logic_error("of the body");
              });
              throw std::runtime_error("no exception");
            } catch (const std::logic_error&) {
            }
            Tensor second = ones({1});
            all_reduce(second);
            check(second.item() == 2, "the next call communicates");
            check(first.item() == 2, "what was started completed");
            coalesced([&] { refused([] { coalesced([] {}); }); });
          }) == all_well(2));
}

TEST_CASE("a tensor beyond two gibibytes is sent and reduced whole", "[.large]") {
  constexpr std::int64_t kBytes = (std::int64_t{1} << 31) + 4097;
  REQUIRE(run_ranks(2, [](int rank) {
            Tensor large = full({kBytes}, rank + 1, DType::kUInt8);
            all_reduce(large);
            for (const std::int64_t at : {std::int64_t{0}, kBytes / 2, kBytes - 1}) {
              check(large.select(0, at).item() == 3, "sum");
            }
            large.slice(0, kBytes - 5, kBytes).fill_(7 + rank);
            if (rank == 0) {
              send(large, {.dst = 1});
            } else {
              recv(large, {.src = 0});
              check(large.select(0, kBytes - 1).item() == 7, "last byte");
            }
          }) == all_well(2));
}
