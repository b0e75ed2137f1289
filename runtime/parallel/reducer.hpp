#pragma once

#include "runtime/parallel/bucket_assignment.hpp"
#include "runtime/parallel/iteration_times.hpp"
#include "tensorplay/distributed/init.hpp"
#include "tensorplay/nn/parallel/distributed_data_parallel.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::nn::parallel {

struct ReducerOptions {
  distributed::Group group;
  std::vector<std::size_t> bucket_caps;
  bool find_unused_parameters = false;
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  bool skip_all_reduce_unused_params = false;
  bool batched_grad_copy = false;
  bool lazy_bucket_allocation = false;
  std::vector<std::size_t> delayed;  ///< Parameters in a bucket of their own, let go by `delay_trigger`.
  std::optional<std::size_t> delay_trigger = {};
};

/// Collects gradients in buckets and reduces each as soon as it and all before it are full.
///
/// A pass begins with begin(), gets mark_ready for each gradient, and ends with finish(). Parameters go by their place
/// in the model's list; those that need no gradient are not looked at.
/// Thread rules: mark_ready and mark_unused from any thread, the rest from one.
class Reducer {
 public:
  /// Averages a bucket: the default reduction or the user's hook.
  using Reduce = CommHook;

  Reducer(Model& model, ReducerOptions options);

  struct Pass {
    bool reduces = true;   ///< False: gradients accumulate locally.
    int order_source = 0;  ///< Whose order of gradients the buckets are rebuilt by, a group rank.
    double divisor = 0;    ///< What SUMs are divided by; 0: averages as usual.
    bool is_timed = false;
  };

  void begin(const Pass& pass);
  bool is_in_pass() const;
  bool has_unfinished_gradients() const;  ///< Some were marked in a reducing pass that did not finish.

  void mark_ready(std::size_t parameter);
  void mark_unused(std::size_t parameter);
  void finish();

  /// The whole pass of a rank without inputs: takes part in the reductions with zeros and leaves its gradients alone.
  void shadow(const Pass& pass);

  void forward_began() { times_.forward_began(); }
  void set_hook(Reduce hook) { hook_ = std::move(hook); }
  bool has_hook() const { return hook_ != nullptr; }

  Tensor gradient(std::size_t parameter) const { return model_.parameters.at(parameter).gradient; }
  bool was_used_somewhere(std::size_t parameter) const {
    return parameter >= used_somewhere_.size() || used_somewhere_[parameter];
  }
  std::vector<std::size_t> bucket_bytes() const;
  bool has_rebuilt_buckets() const { return has_rebuilt_; }
  std::size_t unused_bytes() const { return unused_bytes_; }
  const IterationTimes& times() const { return times_; }

 private:
  struct Slot {
    std::size_t bucket = 0;
    Tensor view;               // The gradient's place in its bucket, in the parameter's shape.
    bool is_ready = false;     // In this pass.
    bool is_used = false;      // In this pass.
    bool is_touched = false;   // Since the last reduction, passes under no_sync included.
    int firings = 0;           // In this pass.
    int expected_firings = 0;  // Static graph: in each pass, once known.
  };
  struct Bucket {
    std::vector<std::size_t> parameters;
    Tensor buffer;
    std::size_t pending = 0;
    bool is_let_go = true;  // False: waits for the delay trigger.
    std::shared_ptr<distributed::Future> reduced;
  };

  bool is_trainable(std::size_t parameter) const { return model_.parameters[parameter].requires_grad; }
  bool is_delayed(std::size_t parameter) const;
  void assign(const std::vector<std::size_t>& order);
  void allocate(Bucket& bucket);
  void allocate_all();
  void fill(std::size_t parameter);
  void settle(std::size_t parameter, bool is_used);
  void launch_full();
  void launch(std::size_t bucket);
  void bring_back();
  std::vector<bool> ask_who_used();
  void settle_the_rest();
  void learn_order();
  void end_pass();
  std::string names_of(const std::vector<std::size_t>& parameters) const;

  Model& model_;
  ReducerOptions options_;
  Reduce hook_;
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;  // By parameter.
  std::vector<Bucket> buckets_;
  std::size_t next_to_launch_ = 0;
  std::vector<std::size_t> ready_order_;
  std::vector<std::pair<std::size_t, Tensor>> set_aside_;  // Views zeroed for unused parameters, as they were.
  std::vector<bool> used_somewhere_;                       // By parameter, of the last reduced pass.
  Pass pass_;
  bool is_in_pass_ = false;
  bool is_shadow_ = false;
  bool is_broken_ = false;
  bool knows_graph_ = false;  // The first reduced pass is over.
  bool has_rebuilt_ = false;
  std::size_t unused_bytes_ = 0;
  IterationTimes times_;
};

}  // namespace tensorplay::nn::parallel
