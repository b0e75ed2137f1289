#include "tensorplay/distributed.hpp"
#include "tests/parallel/pulled_model.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

using namespace tensorplay;
using namespace tensorplay::distributed;
using nn::parallel::DistributedDataParallel;
using tensorplay::testing::all_well;
using tensorplay::testing::check;
using tensorplay::testing::PulledModel;
using tensorplay::testing::run_ranks;

namespace {

/// Rank r has `inputs[r]` of them.
void train(DistributedDataParallel& ddp, PulledModel& model, int rank, const std::vector<int>& inputs,
           const nn::parallel::JoinOptions& options = {}) {
  ddp.join(
      [&] {
        for (int i = 0; i < inputs[static_cast<std::size_t>(rank)]; ++i) {
          ddp.forward();
          model.backward(rank, i, [&](std::size_t p) { ddp.mark_ready(p); });
          ddp.finalize_backward();
          model.descend();
        }
      },
      options);
}

}  // namespace

TEST_CASE("ranks with fewer inputs join, and all end with the model of the last one") {
  const auto inputs = GENERATE(std::vector<int>{5, 3, 9}, std::vector<int>{0, 4, 4}, std::vector<int>{2, 2, 2},
                               std::vector<int>{0, 0, 0});
  const bool as_view = GENERATE(false, true);
  REQUIRE(run_ranks(3, [&](int rank) {
            PulledModel model({{20, 3}, {5}, {100}});
            DistributedDataParallel ddp(model.list(), {.gradient_as_bucket_view = as_view});
            train(ddp, model, rank, inputs);
            for (const auto& value : model.values) {
              Tensor first = value.clone();
              broadcast(first);
              check(equal(first, value), "a value differs from rank 0's");
            }
            // A rank without inputs contributes zeros: what one process makes of it.
            PulledModel alone({{20, 3}, {5}, {100}});
            for (int i = 0; i < *std::max_element(inputs.begin(), inputs.end()); ++i) {
              std::vector<Tensor> sums;
              for (const auto& value : alone.values) sums.push_back(zeros(value.shape()));
              for (int r = 0; r < 3; ++r) {
                if (i >= inputs[static_cast<std::size_t>(r)]) continue;
                alone.backward(r, i, [](std::size_t) {});
                for (std::size_t p = 0; p < sums.size(); ++p) sums[p].add_(alone.gradients[p]);
              }
              for (std::size_t p = 0; p < sums.size(); ++p) {
                for (auto& x : sums[p].span<float>()) x /= 3;
                alone.gradients[p].copy_(sums[p]);
              }
              alone.descend();
            }
            check(testing::same_bits(alone.values, model.values), "differs from one process");
          }) == all_well(3));
}

TEST_CASE("gradients are divided by the ranks that still have inputs when that is asked for") {
  REQUIRE(run_ranks(2, [](int rank) {
            PulledModel model({{4}});
            DistributedDataParallel ddp(model.list());
            std::vector<float> seen;
            ddp.join(
                [&] {
                  for (int i = 0; i < (rank == 0 ? 1 : 2); ++i) {
                    ddp.forward();
                    model.gradients[0].fill_(rank + 1);
                    ddp.mark_ready(0);
                    ddp.finalize_backward();
                    seen.push_back(model.gradients[0].data<float>()[0]);
                  }
                },
                {.divide_by_initial_world_size = false});
            check(seen == (rank == 0 ? std::vector<float>{1.5F} : std::vector<float>{1.5F, 2.0F}), "gradients");
          }) == all_well(2));
}

TEST_CASE("buffers come from a rank that still has inputs") {
  REQUIRE(run_ranks(2, [](int rank) {
            PulledModel model({{4}});
            auto tensors = model.list();
            Tensor mean = zeros({1});
            tensors.buffers = {{"mean", mean}};
            DistributedDataParallel ddp(tensors);
            ddp.join([&] {
              for (int i = 0; i < (rank == 0 ? 1 : 3); ++i) {
                mean.fill_(rank * 10 + i);
                ddp.forward();
                check(mean.item() == (i == 0 ? 0 : 10 + i), "step " + std::to_string(i));
                ddp.mark_ready(0);
                ddp.finalize_backward();
              }
            });
            check(mean.item() == 12, "in the end");
          }) == all_well(2));
}

TEST_CASE("the first rank without inputs can end all of them") {
  const auto endings = run_ranks(2, [](int rank) {
    PulledModel model({{4}});
    DistributedDataParallel ddp(model.list());
    train(ddp, model, rank, {1, 3}, {.throw_on_early_termination = true});
  });
  REQUIRE(endings[0] == "Rank 0 exhausted all inputs.");
  REQUIRE(endings[1] == "Detected at least one rank that exhausted inputs. Throwing across all ranks.");
}

TEST_CASE("join that is not enabled changes nothing") {
  REQUIRE(run_ranks(2, [](int rank) {
            PulledModel model({{4}});
            DistributedDataParallel ddp(model.list());
            train(ddp, model, rank, {3, 3}, {.enable = false});
          }) == all_well(2));
}
