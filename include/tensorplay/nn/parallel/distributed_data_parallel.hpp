#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/init.hpp"
#include "tensorplay/distributed/tensor.hpp"
#include "tensorplay/nn/parallel/grad_bucket.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::nn::parallel {

/// A parameter as its model lists it.
struct Parameter {
  std::string name = {};
  Tensor value = {};
  /// Where the backward pass writes the derivative; the value's shape and dtype. May be undefined under
  /// gradient_as_bucket_view.
  Tensor gradient = {};
  /// Tells the model to write the gradient elsewhere from now on; needed under gradient_as_bucket_view. The new place
  /// holds what the old one held.
  std::function<void(const Tensor& gradient)> set_gradient = {};
  bool requires_grad = true;
};

/// A tensor that is part of the model and not trained: running means, counters.
struct Buffer {
  std::string name = {};
  Tensor value = {};
};

/// A model, for what data parallelism needs of it: tensors in an order that is the same on all ranks.
struct Model {
  std::vector<Parameter> parameters = {};
  std::vector<Buffer> buffers = {};
};

inline constexpr std::size_t kDefaultBucketCapMb = 25;
inline constexpr std::size_t kDefaultFirstBucketBytes = std::size_t{1024} * 1024;

struct DistributedDataParallelOptions {
  /// None, or the one device the model is on; for a model on the CPU none.
  std::vector<Device> device_ids = {};
  std::optional<Device> output_device = {};
  int dim = 0;  ///< Has no meaning with one device for each process; as in torch.
  /// The older form of forward_sync_buffers; false also leaves them out at the start.
  std::optional<bool> broadcast_buffers = {};
  bool init_sync = true;                          ///< Verify the model, and take over rank 0's parameters and buffers.
  distributed::Group process_group = {};          ///< Default: the default group.
  std::optional<std::size_t> bucket_cap_mb = {};  ///< Default: 25.
  bool find_unused_parameters = false;
  bool check_reduction = false;  ///< Deprecated, ignored.
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  /// Parameters (by name) that are left out of the buckets and reduced together once the gradient of
  /// `param_to_hook_all_reduce` is ready. Both or neither.
  std::vector<std::string> delay_all_reduce_named_params = {};
  std::string param_to_hook_all_reduce = {};
  /// Gradients travel in this dtype. What the forward pass computes in is the model's own choice.
  std::optional<DType> mixed_precision_reduce_dtype = {};
  /// With find_unused_parameters: ranks do not exchange who used what; a gradient that no rank made becomes zero.
  bool skip_all_reduce_unused_params = false;
  std::vector<double> bucket_cap_mb_list = {};    ///< Caps of the first buckets, in order; the last one goes on.
  bool batched_grad_copy = false;                 ///< Copy a bucket's gradients when all are ready, not one by one.
  std::optional<bool> forward_sync_buffers = {};  ///< Buffers follow rank 0's at each forward; default: yes.
  bool lazy_bucket_allocation = false;            ///< Take the buckets' memory at the first backward.
};

struct JoinOptions {
  bool divide_by_initial_world_size = true;  ///< False: by the number of ranks that still have inputs.
  bool enable = true;                        ///< False: the inputs are even, do nothing.
  bool throw_on_early_termination = false;   ///< The first rank without inputs ends all of them with an error.
};

/// Trains one model on all ranks of a group, each with inputs of its own: averages the gradients, while the backward
/// pass still runs.
///
/// Works with any model that lists its parameters and says when a gradient is there:
///
///     DistributedDataParallel ddp(model.list());          // rank 0's parameters on all ranks
///     for (...) {
///       ddp.forward();                                    // rank 0's buffers on all ranks
///       loss = model.forward(input);
///       model.backward([&](std::size_t parameter) { ddp.mark_ready(parameter); });
///       ddp.finalize_backward();                          // gradients are averages now
///       optimizer.step();
///     }
///
/// Gradients are collected in buckets in the reverse of the order in which parameters are listed, as the backward pass
/// makes them: the first of 1 MB, the others of 25 MB. A full bucket is reduced at once. After the first iteration the
/// buckets are rebuilt in the order in which the gradients came, which rank 0 tells the others. Averages are sums in
/// rank order divided once (ReduceOp::AVG): the same bits on every rank, whatever the buckets are, so parameters stay
/// equal without being sent again.
/// Thread rules: mark_ready and mark_unused from any thread, the rest from one. The model's tensors outlive the object.
/// Errors: InvalidArgument for a mistake this rank can see; DistError when ranks disagree, and what the collectives
/// throw. After an error during a backward pass the object is unusable.
/// Source: torch.nn.parallel.DistributedDataParallel.
class TP_API DistributedDataParallel {
 public:
  /// Verifies that all ranks hold the same model (names, shapes, dtypes; DistError that names the first parameter that
  /// differs, on every rank), then broadcasts parameters and buffers from group rank 0.
  explicit DistributedDataParallel(Model model, DistributedDataParallelOptions options = {});
  ~DistributedDataParallel();
  DistributedDataParallel(DistributedDataParallel&&) noexcept;
  DistributedDataParallel& operator=(DistributedDataParallel&&) noexcept;

  /// Before each forward pass: broadcasts the buffers (unless within no_sync). DistError when the last iteration that
  /// was to be reduced is not finished: "Expected to have finished reduction in the prior iteration ...".
  void forward();

  /// Gradient number `parameter` (in the order of the list, frozen ones included) is complete in this pass.
  /// DistError when it was already, but for a static graph.
  void mark_ready(std::size_t parameter);

  /// The parameter has no part in this pass; lets its bucket go without waiting for finalize_backward. Needs
  /// find_unused_parameters or a static graph.
  void mark_unused(std::size_t parameter);

  /// After the backward pass: waits for the reductions, and brings the averages into the gradients. DistError that
  /// names the parameters whose gradient never came; with find_unused_parameters they count as unused instead: zeros
  /// are averaged for this rank, and a gradient that no rank made is left alone on all of them.
  void finalize_backward();

  /// While it lives, forward and backward passes accumulate locally; the next pass outside reduces the sum.
  class TP_API NoSync {
   public:
    explicit NoSync(DistributedDataParallel& ddp);
    ~NoSync();
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DistributedDataParallel& ddp_;
    bool before_;
  };
  bool require_backward_grad_sync() const noexcept;  ///< False within no_sync.
  [[nodiscard]] NoSync no_sync() { return NoSync(*this); }

  /// Runs `loop`, this rank's iterations, when ranks may have different numbers of them. A rank that is through keeps
  /// taking part in the others' reductions with zeros, and ends with the parameters and buffers of those that had most.
  /// A warning after 1,000 iterations in which some rank had none. Other operations of the group have no place in
  /// `loop`.
  void join(const std::function<void()>& loop, const JoinOptions& options = {});

  /// Once, before the first backward pass; DistError "register_comm_hook ... can only be called once".
  void register_comm_hook(CommHook hook, std::string name = "custom");

  /// Gradient `parameter` as the model has to write it: under gradient_as_bucket_view a view of its bucket.
  Tensor gradient(std::size_t parameter) const;

  /// Whether any rank made that gradient in the last iteration that was reduced; always true unless
  /// find_unused_parameters or a static graph asks the ranks.
  bool was_used_somewhere(std::size_t parameter) const;

  const Model& model() const noexcept;
  const distributed::Group& process_group() const noexcept;

  /// What this object is and how its last iterations went, by torch's names: world_size, bucket_sizes,
  /// rebuilt_bucket_sizes, num_iterations, avg_backward_compute_time (ns), avg_backward_comm_time, ...
  std::map<std::string, std::string> get_ddp_logging_data() const;

  /// Times are taken in every n-th iteration (default 100) and in the first ten.
  void set_ddp_runtime_logging_sample_rate(int every);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tensorplay::nn::parallel
