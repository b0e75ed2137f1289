#include "tensorplay/distributed.hpp"
#include "tensorplay/distributed/algorithms/ddp_comm_hooks.hpp"
#include "tests/parallel/pulled_model.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

using namespace tensorplay;
using namespace tensorplay::distributed;
namespace hooks = tensorplay::distributed::algorithms::ddp_comm_hooks;
using hooks::DDPCommHookType;
using nn::parallel::DistributedDataParallel;
using tensorplay::testing::all_well;
using tensorplay::testing::check;
using tensorplay::testing::PulledModel;
using tensorplay::testing::run_ranks;

namespace {

void train(DistributedDataParallel& ddp, PulledModel& model, int rank, int steps, double rate = 0.2) {
  for (int i = 0; i < steps; ++i) {
    ddp.forward();
    model.backward(rank, 0, [&](std::size_t p) { ddp.mark_ready(p); });
    ddp.finalize_backward();
    model.descend(rate);
  }
}

double largest_gradient(const PulledModel& model) {
  double largest = 0;
  for (const auto& gradient : model.gradients) {
    for (const float x : gradient.to(DType::kFloat32).contiguous().span<float>()) {
      largest = std::max(largest, static_cast<double>(std::abs(x)));
    }
  }
  return largest;
}

}  // namespace

TEST_CASE("every ready-made hook trains to the same place on all ranks") {
  const auto type = GENERATE(DDPCommHookType::ALLREDUCE, DDPCommHookType::FP16_COMPRESS, DDPCommHookType::BF16_COMPRESS,
                             DDPCommHookType::POWER_SGD);
  REQUIRE(run_ranks(2, [&](int rank) {
            PulledModel model({{20, 30}, {30}});
            DistributedDataParallel ddp(model.list());
            hooks::register_ddp_comm_hook(type, ddp);
            train(ddp, model, rank, 40);
            for (const auto& value : model.values) {
              Tensor first = value.clone();
              broadcast(first);
              check(equal(first, value), "a value differs from rank 0's");
            }
            check(largest_gradient(model) < 0.02, "not there yet: " + std::to_string(largest_gradient(model)));
          }) == all_well(2));
}

TEST_CASE("PowerSGD sends a fraction, and error feedback brings it to where whole gradients go") {
  const bool batched = GENERATE(false, true);
  REQUIRE(run_ranks(3, [&](int rank) {
            PulledModel model({{64, 48}, {48}, {48, 10}});
            DistributedDataParallel ddp(model.list(), {.bucket_cap_mb_list = {0.004}});
            hooks::PowerSGDState state({.matrix_approximation_rank = 2, .start_powerSGD_iter = 3});
            ddp.register_comm_hook(batched ? hooks::batched_powerSGD_hook(state) : hooks::powerSGD_hook(state));
            train(ddp, model, rank, 500, 0.03);  // Feedback comes late: rates have to be small.
            check(largest_gradient(model) < 0.05, "not there yet: " + std::to_string(largest_gradient(model)));
            check(state.elements_after() * 4 < state.elements_before(),
                  std::to_string(state.elements_after()) + " of " + std::to_string(state.elements_before()));
            for (const auto& value : model.values) {
              Tensor first = value.clone();
              broadcast(first);
              check(equal(first, value), "a value differs from rank 0's");
            }
          }) == all_well(3));
}

TEST_CASE("wrappers send what they wrap in 16 bits") {
  REQUIRE(run_ranks(2, [](int rank) {
            PulledModel model({{50}});
            DistributedDataParallel ddp(model.list());
            DType seen = DType::kFloat32;
            ddp.register_comm_hook(hooks::bf16_compress_wrapper([&](nn::parallel::GradBucket& bucket) {
              seen = bucket.buffer().dtype();
              return hooks::allreduce_hook()(bucket);
            }));
            train(ddp, model, rank, 1);
            check(seen == DType::kBFloat16, "dtype");
          }) == all_well(2));
}

TEST_CASE("mixed precision's reduce dtype is what travels") {
  REQUIRE(run_ranks(2, [](int rank) {
            PulledModel model({{1}});
            DistributedDataParallel ddp(model.list(), {.mixed_precision_reduce_dtype = DType::kFloat16});
            ddp.forward();
            model.gradients[0].fill_(rank == 0 ? 1.0001 : 1.0001);
            ddp.mark_ready(0);
            ddp.finalize_backward();
            check(model.gradients[0].item() == 1.0, "rounded to float16");
          }) == all_well(2));
}

TEST_CASE("a hook that fails ends the pass with its error") {
  const auto endings = run_ranks(1, [](int rank) {
    PulledModel model({{3}});
    DistributedDataParallel ddp(model.list());
    ddp.register_comm_hook([](nn::parallel::GradBucket&) {
      auto future = std::make_shared<Future>();
      future->set_error(std::make_exception_ptr(std::runtime_error("the hook's own error")));
      return future;
    });
    train(ddp, model, rank, 1);
  });
  REQUIRE(endings.front() == "the hook's own error");
}

TEST_CASE("a second hook, an empty one and a start of PowerSGD too early are refused") {
  const auto endings = run_ranks(1, [](int) {
    PulledModel model({{3}});
    DistributedDataParallel ddp(model.list());
    try {
      ddp.register_comm_hook(nullptr);
      check(false, "an empty hook");
    } catch (const InvalidArgument&) {
    }
    try {
      const hooks::PowerSGDState state({.start_powerSGD_iter = 1});
      check(false, "too early");
    } catch (const InvalidArgument& error) {
      check(std::string(error.what()).starts_with("Expect `start_powerSGD_iter` > 1"), error.what());
    }
    ddp.register_comm_hook(hooks::noop_hook());
    ddp.register_comm_hook(hooks::noop_hook());
  });
  REQUIRE(endings.front() == "register_comm_hook or register_builtin_comm_hook can only be called once.");
}
