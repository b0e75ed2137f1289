/// Ready-made communication hooks for DistributedDataParallel::register_comm_hook.
///
///     ddp.register_comm_hook(ddp_comm_hooks::fp16_compress_hook());
///
/// Each is a function that makes the hook; a group that is not given is the default group.
/// Thread rules and errors: those of CommHook. Source: torch.distributed.algorithms.ddp_comm_hooks.
#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/init.hpp"
#include "tensorplay/nn/parallel/distributed_data_parallel.hpp"
#include "tensorplay/nn/parallel/grad_bucket.hpp"

#include <cstdint>
#include <memory>

namespace tensorplay::distributed::algorithms::ddp_comm_hooks {

using nn::parallel::CommHook;
using nn::parallel::GradBucket;

/// What DistributedDataParallel does without a hook.
TP_API CommHook allreduce_hook(Group group = {});

/// The gradients travel as float16 (bfloat16), are added up in float and rounded once: half the bytes.
TP_API CommHook fp16_compress_hook(Group group = {});
TP_API CommHook bf16_compress_hook(Group group = {});
TP_API CommHook compress_hook(DType dtype, Group group = {});

/// The same around another hook.
TP_API CommHook fp16_compress_wrapper(CommHook hook);
TP_API CommHook bf16_compress_wrapper(CommHook hook);

/// Reduces nothing: to see what communication costs.
TP_API CommHook noop_hook();

struct PowerSGDOptions {
  Group process_group = {};
  int matrix_approximation_rank = 1;
  std::int64_t start_powerSGD_iter = 1000;  ///< Before that gradients are averaged whole.
  double min_compression_rate = 2;          ///< A tensor that would shrink less than that is averaged whole.
  bool use_error_feedback = true;           ///< What was lost is added to the next gradient.
  bool warm_start = true;                   ///< Each iteration begins with the last one's Q.
  double orthogonalization_epsilon = 0;
  std::uint64_t random_seed = 0;  ///< The same on all ranks.
};

/// What PowerSGD keeps from one iteration to the next: one for each model.
///
/// Makes a thread, which runs the hook's operations one after the other; nothing else may use the group until
/// finalize_backward has returned. InvalidArgument "Expect `start_powerSGD_iter` > 1 if ..." for torch's reason.
class TP_API PowerSGDState {
 public:
  explicit PowerSGDState(PowerSGDOptions options = {});
  ~PowerSGDState();
  PowerSGDState(const PowerSGDState&) = delete;
  PowerSGDState& operator=(const PowerSGDState&) = delete;

  /// Elements that gradients had, and that were sent for them, in the iterations that were compressed.
  std::int64_t elements_before() const;
  std::int64_t elements_after() const;

  struct Core;
  const std::shared_ptr<Core>& core() const { return core_; }

 private:
  std::shared_ptr<Core> core_;
};

/// Sends a gradient of n x m as two factors of (n + m) x rank (Vogels et al., 2019).
TP_API CommHook powerSGD_hook(const PowerSGDState& state);

/// The whole bucket as one square matrix: faster and rougher.
TP_API CommHook batched_powerSGD_hook(const PowerSGDState& state);

enum class DDPCommHookType : std::uint8_t {
  ALLREDUCE,
  FP16_COMPRESS,
  BF16_COMPRESS,
  POWER_SGD,
  POWER_SGD_RANK2,
  BATCHED_POWER_SGD,
  BATCHED_POWER_SGD_RANK2,
  NOOP,
};

/// By name; PowerSGD's state lives in the hook.
TP_API void register_ddp_comm_hook(DDPCommHookType type, nn::parallel::DistributedDataParallel& model);

}  // namespace tensorplay::distributed::algorithms::ddp_comm_hooks
