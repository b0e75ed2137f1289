#include "tensorplay/distributed.hpp"
#include "tests/parallel/pulled_model.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <mutex>

using namespace tensorplay;
using namespace tensorplay::distributed;
using nn::parallel::DistributedDataParallel;
using tensorplay::testing::all_well;
using tensorplay::testing::check;
using tensorplay::testing::PulledModel;
using tensorplay::testing::run_ranks;
using tensorplay::testing::same_bits;

namespace {

const std::vector<Shape> kShapes = {{40, 30}, {30}, {300, 50}, {7, 3, 2}, {1}};

void step(DistributedDataParallel& ddp, PulledModel& model, int rank, int number) {
  ddp.forward();
  model.backward(rank, number, [&](std::size_t i) { ddp.mark_ready(i); });
  ddp.finalize_backward();
}

/// Throws unless every rank's values have the bits of rank 0's.
void check_equal_on_all_ranks(const PulledModel& model) {
  for (const Tensor& value : model.values) {
    Tensor first = value.clone();
    broadcast(first);
    check(equal(first, value), "a value differs from rank 0's");
  }
}

}  // namespace

TEST_CASE("parameters stay bit-identical on all ranks over 1000 steps, with nothing broadcast after the start") {
  REQUIRE(run_ranks(3, [](int rank) {
            PulledModel model(kShapes, static_cast<std::uint64_t>(rank) + 1);
            DistributedDataParallel ddp(model.list());
            check_equal_on_all_ranks(model);
            for (int i = 0; i < 1000; ++i) {
              step(ddp, model, rank, i);
              model.descend();
            }
            check_equal_on_all_ranks(model);
          }) == all_well(3));
}

TEST_CASE("gradients are what one all_reduce of all of them gives, bit for bit, in every mode") {
  const bool as_view = GENERATE(false, true);
  const bool batched = GENERATE(false, true);
  const bool lazy = GENERATE(false, true);
  const bool is_static = GENERATE(false, true);
  REQUIRE(run_ranks(4, [&](int rank) {
            PulledModel model(kShapes);
            PulledModel plain(kShapes);
            DistributedDataParallel ddp(model.list(), {.gradient_as_bucket_view = as_view,
                                                       .static_graph = is_static,
                                                       .bucket_cap_mb_list = {0.002, 0.01},
                                                       .batched_grad_copy = batched,
                                                       .lazy_bucket_allocation = lazy});
            for (int i = 0; i < 5; ++i) {
              step(ddp, model, rank, i);
              plain.backward(rank, i, [](std::size_t) {});
              for (const auto& gradient : plain.gradients) all_reduce(gradient, {.op = ReduceOp::AVG});
              check(same_bits(model.gradients, plain.gradients), "step " + std::to_string(i));
              model.descend();
              plain.descend();
            }
            check(ddp.get_ddp_logging_data().at("has_rebuilt_buckets") == "1", "rebuilt");
          }) == all_well(4));
}

TEST_CASE("reduction begins while the backward pass still runs") {
  REQUIRE(run_ranks(2, [](int rank) {
            PulledModel model({{100}, {100}, {100}});
            DistributedDataParallel ddp(model.list(), {.bucket_cap_mb_list = {0.0001}});
            int begun = 0;
            ddp.register_comm_hook([&](nn::parallel::GradBucket& bucket) {
              ++begun;
              check(bucket.gradients().size() == 1 && bucket.buffer().numel() == 100, "bucket");
              check(bucket.is_last() == (bucket.index() == 2), "is_last");
              return all_reduce(bucket.buffer(), {.op = ReduceOp::AVG, .async_op = true})->get_future();
            });
            std::vector<int> begun_at_mark;
            ddp.forward();
            model.backward(rank, 0, [&](std::size_t i) {
              ddp.mark_ready(i);
              begun_at_mark.push_back(begun);
            });
            check(begun_at_mark == std::vector<int>{1, 2, 3}, "each bucket goes when it is full");
            ddp.finalize_backward();
          }) == all_well(2));
}

TEST_CASE("buckets are rebuilt in the order in which rank 0's gradients came") {
  REQUIRE(run_ranks(2, [](int rank) {
            PulledModel model({{1000}, {10}, {10}, {2000}});
            DistributedDataParallel ddp(model.list(), {.bucket_cap_mb_list = {0.004, 0.004}});
            check(ddp.get_ddp_logging_data().at("bucket_sizes") == "8000, 4080", "reverse order of the list");
            ddp.forward();
            std::vector<std::size_t> order = {1, 3, 0, 2};
            if (rank == 1) order = {3, 2, 1, 0};
            for (const auto i : order) {
              model.differentiate(rank, 0, i);
              ddp.mark_ready(i);
            }
            ddp.finalize_backward();
            check(ddp.get_ddp_logging_data().at("rebuilt_bucket_sizes") == "8040, 4040",
                  ddp.get_ddp_logging_data().at("rebuilt_bucket_sizes"));
          }) == all_well(2));
}

TEST_CASE("a model that differs is refused on every rank, and the parameter is named") {
  const auto endings = run_ranks(3, [](int rank) {
    PulledModel model({{4, 5}, rank == 2 ? Shape{3} : Shape{2}, {1}});
    const DistributedDataParallel ddp(model.list());
  });
  for (const auto& text : endings) {
    REQUIRE(text ==
            "DDP expects same model across all ranks, but params[1] of rank 2 is \"p1\" float32 (3), of rank 0 \"p1\" "
            "float32 (2)");
  }
  const auto longer = run_ranks(2, [](int rank) {
    PulledModel model(rank == 1 ? std::vector<Shape>{{2}, {3}} : std::vector<Shape>{{2}});
    const DistributedDataParallel ddp(model.list());
  });
  REQUIRE(longer[0] ==
          "DDP expects same model across all ranks, but Rank 0 has 1 params, while rank 1 has inconsistent 2 params; "
          "only rank 1 has \"p1\" float32 (3)");
  REQUIRE(longer[1] == longer[0]);
}

TEST_CASE("buffers follow rank 0's at each forward, unless told otherwise") {
  REQUIRE(run_ranks(2, [](int rank) {
            PulledModel model({{2}});
            auto tensors = model.list();
            Tensor mean = full({3}, rank + 10);
            Tensor count = full({1}, rank + 20, DType::kInt64);
            tensors.buffers = {{"mean", mean}, {"count", count}};
            DistributedDataParallel ddp(tensors, {.forward_sync_buffers = true});
            check(equal(mean, full({3}, 10)) && count.item() == 20, "at the start");
            mean.fill_(rank);
            ddp.forward();
            check(equal(mean, zeros({3})), "at forward");
            mean.fill_(rank);
            {
              const auto guard = ddp.no_sync();
              ddp.forward();
            }
            check(equal(mean, full({3}, rank)), "not within no_sync");
            DistributedDataParallel lonely(tensors, {.broadcast_buffers = false});
            lonely.forward();
            check(equal(mean, full({3}, rank)), "broadcast_buffers = false");
          }) == all_well(2));
}

TEST_CASE("gradients that accumulate under no_sync are reduced by the next pass outside") {
  const bool as_view = GENERATE(false, true);
  REQUIRE(run_ranks(2, [&](int rank) {
            PulledModel model(kShapes);
            PulledModel plain(kShapes);
            DistributedDataParallel ddp(model.list(), {.gradient_as_bucket_view = as_view});
            for (int round = 0; round < 3; ++round) {
              model.zero_grad();
              plain.zero_grad();
              {
                const auto guard = ddp.no_sync();
                ddp.forward();
                model.backward(
                    rank, round, [&](std::size_t i) { ddp.mark_ready(i); }, true);
                ddp.finalize_backward();
              }
              ddp.forward();
              model.backward(
                  rank, round + 50, [&](std::size_t i) { ddp.mark_ready(i); }, true);
              ddp.finalize_backward();
              plain.backward(
                  rank, round, [](std::size_t) {}, true);
              plain.backward(
                  rank, round + 50, [](std::size_t) {}, true);
              for (const auto& gradient : plain.gradients) all_reduce(gradient, {.op = ReduceOp::AVG});
              check(same_bits(model.gradients, plain.gradients), "round " + std::to_string(round));
              model.descend();
              plain.descend();
            }
          }) == all_well(2));
}

TEST_CASE("a gradient that never came is named, instead of a hang") {
  for (const auto& text : run_ranks(1, [](int rank) {
         PulledModel model(kShapes);
         DistributedDataParallel ddp(model.list());
         ddp.forward();
         for (const std::size_t i : {4, 3, 0}) {
           model.differentiate(rank, 0, i);
           ddp.mark_ready(i);
         }
         ddp.finalize_backward();
       })) {
    REQUIRE_THAT(text, Catch::Contains("Expected to have finished reduction in the prior iteration"));
    REQUIRE_THAT(text, Catch::Contains("find_unused_parameters = true"));
    REQUIRE_THAT(text, Catch::Contains("for rank 0: p1 (1), p2 (2)"));
  }
}

TEST_CASE("unused parameters count as zeros, and what no rank used is left alone") {
  const bool as_view = GENERATE(false, true);
  const bool says_so = GENERATE(false, true);
  REQUIRE(run_ranks(2, [&](int rank) {
            PulledModel model({{3}, {3}, {3}, {3}});
            DistributedDataParallel ddp(model.list(),
                                        {.find_unused_parameters = true, .gradient_as_bucket_view = as_view});
            for (int i = 0; i < 3; ++i) {
              for (auto& gradient : model.gradients) gradient.fill_(5);  // Of an earlier step.
              ddp.forward();
              if (says_so) ddp.mark_unused(2);
              for (const std::size_t p : {3, 1, 0}) {
                if (p == 1 && rank == 1) continue;
                model.gradients[p].fill_(rank + 1);
                ddp.mark_ready(p);
              }
              ddp.finalize_backward();
              check(equal(model.gradients[0], full({3}, 1.5)), "used by both");
              check(equal(model.gradients[1], full({3}, 0.5)), "used by rank 0");
              check(equal(model.gradients[2], full({3}, 5)), "used by none");
              check(ddp.get_ddp_logging_data().at("unused_parameter_size") == (rank == 1 ? "24" : "12"), "told");
            }
          }) == all_well(2));
}

TEST_CASE("a static graph learns how often each gradient comes, and says when that changes") {
  const auto endings = run_ranks(2, [](int rank) {
    PulledModel model({{3}, {3}, {3}});
    DistributedDataParallel ddp(model.list(), {.static_graph = true});
    for (int i = 0; i < 3; ++i) {
      model.zero_grad();
      ddp.forward();
      for (const std::size_t p : {2, 0, 2}) {  // Parameter 2 is used twice, parameter 1 never.
        model.gradients[p].add_(rank + 1);
        ddp.mark_ready(p);
      }
      ddp.finalize_backward();
      check(equal(model.gradients[2], full({3}, 3)), "used twice");
      check(equal(model.gradients[1], zeros({3})), "unused");
      check(equal(model.gradients[0], full({3}, 1.5)), "used once");
    }
    ddp.forward();
    ddp.mark_ready(2);
    ddp.finalize_backward();
  });
  for (const auto& text : endings) {
    REQUIRE_THAT(text, Catch::Contains("Your training graph has changed in this iteration") && Catch::Contains("p0"));
  }
}

TEST_CASE("delayed parameters are reduced last, once the gradient they wait for is there") {
  REQUIRE(run_ranks(2, [](int rank) {
            PulledModel model({{3}, {5}, {4}});
            DistributedDataParallel ddp(model.list(),
                                        {.delay_all_reduce_named_params = {"p2"}, .param_to_hook_all_reduce = "p0"});
            for (int i = 0; i < 3; ++i) {
              ddp.forward();
              for (auto& gradient : model.gradients) gradient.fill_(rank + 1);
              for (const std::size_t p : {2, 1, 0}) ddp.mark_ready(p);
              ddp.finalize_backward();
              for (auto& gradient : model.gradients) check(gradient.select(0, 0).item() == 1.5, "averaged");
            }
            check(ddp.get_ddp_logging_data().at("rebuilt_bucket_sizes") == "32, 16", "a bucket of its own");
          }) == all_well(2));
}

TEST_CASE("gradients may be marked from several threads") {
  REQUIRE(run_ranks(2, [](int rank) {
            PulledModel model(std::vector<Shape>(40, Shape{100}));
            DistributedDataParallel ddp(model.list(), {.bucket_cap_mb_list = {0.001}});
            for (int i = 0; i < 10; ++i) {
              ddp.forward();
              for (std::size_t p = 0; p < 40; ++p) model.differentiate(rank, i, p);
              std::vector<std::thread> threads;
              for (std::size_t t = 0; t < 4; ++t) {
                threads.emplace_back([&, t] {
                  for (std::size_t p = t; p < 40; p += 4) ddp.mark_ready(p);
                });
              }
              for (auto& thread : threads) thread.join();
              ddp.finalize_backward();
              model.descend();
            }
            check_equal_on_all_ranks(model);
          }) == all_well(2));
}

TEST_CASE("mistakes of the caller are told before anything is sent") {
  const auto text_of = [](const std::function<void(PulledModel&)>& act) {
    return run_ranks(1,
                     [&](int) {
                       PulledModel model({{3}, {2}});
                       act(model);
                     })
        .front();
  };
  REQUIRE_THAT(text_of([](PulledModel& model) {
                 auto tensors = model.list();
                 for (auto& parameter : tensors.parameters) parameter.requires_grad = false;
                 const DistributedDataParallel ddp(tensors);
               }),
               Catch::Contains("doesn't have any parameter that requires a gradient"));
  REQUIRE_THAT(text_of([](PulledModel& model) {
                 const DistributedDataParallel ddp(model.list(), {.device_ids = {Device(DeviceType::kCUDA, 0)}});
               }),
               Catch::Contains("device_ids and output_device arguments only work with"));
  REQUIRE_THAT(text_of([](PulledModel& model) {
                 const DistributedDataParallel ddp(model.list(), {.delay_all_reduce_named_params = {"p0"}});
               }),
               Catch::Contains("need to be set at the same time"));
  REQUIRE_THAT(text_of([](PulledModel& model) {
                 auto tensors = model.list();
                 tensors.parameters[0].gradient = zeros({4});
                 const DistributedDataParallel ddp(tensors);
               }),
               Catch::Contains("\"p0\" and its gradient differ in shape"));
  REQUIRE_THAT(text_of([](PulledModel& model) {
                 DistributedDataParallel ddp(model.list());
                 ddp.forward();
                 ddp.mark_ready(1);
                 ddp.mark_ready(1);
               }),
               Catch::Contains("marked as ready twice") && Catch::Contains("p1"));
  REQUIRE_THAT(text_of([](PulledModel& model) {
                 DistributedDataParallel ddp(model.list());
                 ddp.forward();
                 ddp.mark_ready(1);
                 ddp.forward();
               }),
               Catch::Contains("Expected to have finished reduction in the prior iteration"));
}

TEST_CASE("the checks of DETAIL do not disturb it") {
  const DebugLevel before = get_debug_level();
  set_debug_level(DebugLevel::DETAIL);
  const auto endings = run_ranks(2, [](int rank) {
    PulledModel model(kShapes);
    DistributedDataParallel ddp(model.list(), {.find_unused_parameters = true, .bucket_cap_mb_list = {0.01}});
    for (int i = 0; i < 3; ++i) step(ddp, model, rank, i);
    check_equal_on_all_ranks(model);
  });
  set_debug_level(before);
  REQUIRE(endings == all_well(2));
}

TEST_CASE("a peer that fails in the middle of a backward pass is an error, not a hang") {
  const auto endings = run_ranks(
      2,
      [](int rank) {
        PulledModel model(kShapes);
        DistributedDataParallel ddp(model.list());
        step(ddp, model, rank, 0);
        if (rank == 1) throw std::runtime_error("rank 1 has its own trouble");
        step(ddp, model, rank, 1);
      },
      std::chrono::seconds(20));
  REQUIRE(endings[1] == "rank 1 has its own trouble");
  REQUIRE_THAT(endings[0], Catch::Contains("rank 1"));
}

TEST_CASE("the logging data tells the shape of the reduction") {
  REQUIRE(run_ranks(2, [](int rank) {
            PulledModel model(kShapes);
            DistributedDataParallel ddp(model.list());
            for (int i = 0; i < 3; ++i) step(ddp, model, rank, i);
            const auto data = ddp.get_ddp_logging_data();
            check(data.at("world_size") == "2" && data.at("rank") == std::to_string(rank), "place");
            check(data.at("bucket_cap_bytes") == "26214400" && data.at("num_parameter_tensors") == "5", "sizes");
            check(data.at("total_parameter_size_bytes") == data.at("rebuilt_bucket_sizes"), "one bucket");
            check(data.at("num_iterations") == "3" && data.at("dtypes") == "float32", "iterations");
            check(data.at("backend_name") == "cpu:gloo", "backend");
            check(std::stoll(data.at("avg_backward_comm_time")) > 0, "times");
          }) == all_well(2));
}
