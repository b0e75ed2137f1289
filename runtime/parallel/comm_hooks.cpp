#include "tensorplay/distributed/algorithms/ddp_comm_hooks.hpp"
#include "tensorplay/distributed/collectives.hpp"

#include <utility>

namespace tensorplay::distributed::algorithms::ddp_comm_hooks {

CommHook allreduce_hook(Group group) {
  return [group = std::move(group)](GradBucket& bucket) {
    return all_reduce(bucket.buffer(), {.op = ReduceOp::AVG, .group = group, .async_op = true})->get_future();
  };
}

CommHook compress_hook(DType dtype, Group group) {
  return [dtype, group = std::move(group)](GradBucket& bucket) {
    const Tensor small = bucket.buffer().to(dtype);
    auto work = all_reduce(small, {.op = ReduceOp::AVG, .group = group, .async_op = true});
    return work->get_future()->then([whole = bucket.buffer()](const Future& done) mutable {
      whole.copy_(done.value().front());
      return Future::Value{whole};
    });
  };
}

CommHook fp16_compress_hook(Group group) {
  return compress_hook(DType::kFloat16, std::move(group));
}

CommHook bf16_compress_hook(Group group) {
  return compress_hook(DType::kBFloat16, std::move(group));
}

namespace {

CommHook compress_wrapper(DType dtype, CommHook hook) {
  return [dtype, hook = std::move(hook)](GradBucket& bucket) {
    const Tensor whole = bucket.buffer();
    bucket.set_buffer(whole.to(dtype));
    return hook(bucket)->then([whole = whole](const Future& done) mutable {
      whole.copy_(done.value().front());
      return Future::Value{whole};
    });
  };
}

}  // namespace

CommHook fp16_compress_wrapper(CommHook hook) {
  return compress_wrapper(DType::kFloat16, std::move(hook));
}

CommHook bf16_compress_wrapper(CommHook hook) {
  return compress_wrapper(DType::kBFloat16, std::move(hook));
}

CommHook noop_hook() {
  return [](GradBucket& bucket) { return Future::completed({bucket.buffer()}); };
}

void register_ddp_comm_hook(DDPCommHookType type, nn::parallel::DistributedDataParallel& model) {
  const Group group = model.process_group();
  const auto power_sgd = [&](int rank, bool batched) {
    auto state =
        std::make_shared<PowerSGDState>(PowerSGDOptions{.process_group = group, .matrix_approximation_rank = rank});
    auto hook = batched ? batched_powerSGD_hook(*state) : powerSGD_hook(*state);
    return CommHook([state, hook](GradBucket& bucket) { return hook(bucket); });
  };
  switch (type) {
    case DDPCommHookType::ALLREDUCE:
      return model.register_comm_hook(allreduce_hook(group), "allreduce");
    case DDPCommHookType::FP16_COMPRESS:
      return model.register_comm_hook(fp16_compress_hook(group), "fp16_compress");
    case DDPCommHookType::BF16_COMPRESS:
      return model.register_comm_hook(bf16_compress_hook(group), "bf16_compress");
    case DDPCommHookType::POWER_SGD:
      return model.register_comm_hook(power_sgd(1, false), "power_sgd");
    case DDPCommHookType::POWER_SGD_RANK2:
      return model.register_comm_hook(power_sgd(2, false), "power_sgd_rank2");
    case DDPCommHookType::BATCHED_POWER_SGD:
      return model.register_comm_hook(power_sgd(1, true), "batched_power_sgd");
    case DDPCommHookType::BATCHED_POWER_SGD_RANK2:
      return model.register_comm_hook(power_sgd(2, true), "batched_power_sgd_rank2");
    case DDPCommHookType::NOOP:
      return model.register_comm_hook(noop_hook(), "noop");
  }
}

}  // namespace tensorplay::distributed::algorithms::ddp_comm_hooks
