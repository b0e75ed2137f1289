#include "runtime/parallel/reducer.hpp"

#include "tensorplay/distributed/collectives.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tensorplay::nn::parallel {
namespace {

namespace dist = distributed;

constexpr const char* kGraphChanged =
    "Your training graph has changed in this iteration, e.g., one parameter is used in first iteration, but then got "
    "unused in the second iteration. this is not compatible with static_graph set to True.";

}  // namespace

Reducer::Reducer(Model& model, ReducerOptions options)
    : model_(model), options_(std::move(options)), slots_(model.parameters.size()) {
  std::vector<std::size_t> order;
  for (std::size_t i = slots_.size(); i-- > 0;) {
    if (is_trainable(i)) order.push_back(i);
  }
  assign(order);
}

void Reducer::assign(const std::vector<std::size_t>& order) {
  std::vector<BucketCandidate> candidates;
  for (const auto parameter : order) {
    if (is_delayed(parameter)) continue;
    const Tensor& value = model_.parameters[parameter].value;
    candidates.push_back({parameter, value.nbytes(), value.dtype(), value.device()});
  }
  auto lists = assign_buckets(candidates, options_.bucket_caps);
  if (!options_.delayed.empty()) {
    candidates.clear();
    for (const auto parameter : options_.delayed) {
      const Tensor& value = model_.parameters[parameter].value;
      candidates.push_back({parameter, value.nbytes(), value.dtype(), value.device()});
    }
    for (auto& list : assign_buckets(candidates, {SIZE_MAX})) lists.push_back(std::move(list));
  }
  const bool is_same = lists.size() == buckets_.size() &&
                       std::equal(lists.begin(), lists.end(), buckets_.begin(),
                                  [](const auto& list, const Bucket& bucket) { return list == bucket.parameters; });
  if (is_same) return;
  std::vector<Bucket> before = std::exchange(buckets_, {});  // Keeps the memory that gradients may lie in.
  for (std::size_t i = 0; i < lists.size(); ++i) {
    for (const auto parameter : lists[i]) slots_[parameter].bucket = i;
    Bucket& bucket = buckets_.emplace_back();
    bucket.parameters = std::move(lists[i]);
  }
  if (options_.gradient_as_bucket_view || !options_.lazy_bucket_allocation) allocate_all();
}

bool Reducer::is_delayed(std::size_t parameter) const {
  return std::find(options_.delayed.begin(), options_.delayed.end(), parameter) != options_.delayed.end();
}

void Reducer::allocate_all() {
  for (Bucket& bucket : buckets_) allocate(bucket);
}

void Reducer::allocate(Bucket& bucket) {
  std::int64_t count = 0;
  for (const auto parameter : bucket.parameters) count += model_.parameters[parameter].value.numel();
  bucket.buffer = zeros({count}, model_.parameters[bucket.parameters.front()].value.dtype());
  std::int64_t offset = 0;
  for (const auto index : bucket.parameters) {
    Parameter& parameter = model_.parameters[index];
    const auto end = offset + parameter.value.numel();
    slots_[index].view = bucket.buffer.slice(0, offset, end).reshape(parameter.value.shape());
    offset = end;
    if (!options_.gradient_as_bucket_view) continue;
    if (parameter.gradient.defined()) slots_[index].view.copy_(parameter.gradient);
    parameter.gradient = slots_[index].view;
    if (parameter.set_gradient) parameter.set_gradient(parameter.gradient);
  }
}

void Reducer::begin(const Pass& pass) {
  const std::lock_guard lock(mutex_);
  if (is_broken_) throw dist::DistError("DistributedDataParallel: an earlier backward pass failed; make a new one");
  pass_ = pass;
  is_in_pass_ = true;
  next_to_launch_ = 0;
  ready_order_.clear();
  set_aside_.clear();
  if (!pass.reduces) return;
  for (Bucket& bucket : buckets_) {
    bucket.pending = bucket.parameters.size();
    bucket.reduced.reset();
    bucket.is_let_go = !is_delayed(bucket.parameters.front());
  }
  for (Slot& slot : slots_) slot.is_ready = slot.is_used = false, slot.firings = 0;
  if (!options_.static_graph || !knows_graph_) return;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (is_trainable(i) && slots_[i].expected_firings == 0) settle(i, false);
  }
}

bool Reducer::is_in_pass() const {
  const std::lock_guard lock(mutex_);
  return is_in_pass_;
}

bool Reducer::has_unfinished_gradients() const {
  const std::lock_guard lock(mutex_);
  return is_in_pass_ && pass_.reduces && !ready_order_.empty();
}

void Reducer::mark_ready(std::size_t parameter) {
  const std::lock_guard lock(mutex_);
  if (parameter >= slots_.size()) {
    throw dist::InvalidArgument("mark_ready: parameter " + std::to_string(parameter) + " of " +
                                std::to_string(slots_.size()));
  }
  if (!is_trainable(parameter)) return;
  Slot& slot = slots_[parameter];
  slot.is_touched = true;
  if (!pass_.reduces) return;
  ++slot.firings;
  if (ready_order_.empty()) times_.first_gradient();
  if (options_.static_graph) {
    if (slot.firings == 1) ready_order_.push_back(parameter);
    if (!knows_graph_) return;  // Counted; reduced when the pass is over.
    if (slot.firings > slot.expected_firings) throw dist::DistError(kGraphChanged);
    if (slot.firings < slot.expected_firings) return;
  } else if (slot.is_ready) {
    throw dist::DistError(
        "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of "
        "a module parameter outside the `forward` function. 2) Reused parameters in multiple reentrant backward "
        "passes. Parameter at index " +
        std::to_string(parameter) + " with name " + model_.parameters[parameter].name +
        " has been marked as ready twice.");
  } else {
    ready_order_.push_back(parameter);
  }
  settle(parameter, true);
  launch_full();
}

void Reducer::mark_unused(std::size_t parameter) {
  const std::lock_guard lock(mutex_);
  if (parameter >= slots_.size() || !is_trainable(parameter) || !pass_.reduces) return;
  if (options_.static_graph) return;  // The first iteration tells.
  if (!options_.find_unused_parameters) {
    throw dist::InvalidArgument("mark_unused: give find_unused_parameters = true");
  }
  if (slots_[parameter].is_ready) return;
  settle(parameter, false);
  launch_full();
}

/// The parameter's part of its bucket is what this rank contributes.
void Reducer::settle(std::size_t parameter, bool is_used) {
  Slot& slot = slots_[parameter];
  Bucket& bucket = buckets_[slot.bucket];
  if (!bucket.buffer.defined()) allocate(bucket);
  slot.is_ready = true;
  slot.is_used = is_used || slot.is_touched;  // What accumulated under no_sync counts too.
  if (slot.is_used) {
    if (!options_.batched_grad_copy) fill(parameter);
  } else {
    if (options_.gradient_as_bucket_view) set_aside_.emplace_back(parameter, slot.view.clone());
    slot.view.fill_(0);
  }
  --bucket.pending;
  if (options_.delay_trigger == parameter) {
    for (const auto delayed : options_.delayed) buckets_[slots_[delayed].bucket].is_let_go = true;
  }
}

void Reducer::fill(std::size_t parameter) {
  if (!options_.gradient_as_bucket_view && !is_shadow_) {
    slots_[parameter].view.copy_(model_.parameters[parameter].gradient);
  }
}

/// All ranks reduce bucket after bucket, whichever is full first on each.
void Reducer::launch_full() {
  while (next_to_launch_ < buckets_.size()) {
    const Bucket& bucket = buckets_[next_to_launch_];
    if (bucket.pending > 0 || !bucket.is_let_go) return;
    launch(next_to_launch_++);
  }
}

void Reducer::launch(std::size_t index) {
  Bucket& bucket = buckets_[index];
  std::vector<Tensor> views;
  std::vector<Tensor> parameters;
  for (const auto parameter : bucket.parameters) {
    if (options_.batched_grad_copy && slots_[parameter].is_used) fill(parameter);
    views.push_back(slots_[parameter].view);
    parameters.push_back(model_.parameters[parameter].value);
  }
  times_.reduction_began();
  if (hook_) {
    GradBucket seen(index, index + 1 == buckets_.size(), bucket.buffer, std::move(views), std::move(parameters));
    bucket.reduced = hook_(seen);
    if (!bucket.reduced) throw dist::InvalidArgument("the communication hook returned no future");
  } else {
    const auto op = pass_.divisor > 0 ? dist::ReduceOp::SUM : dist::ReduceOp::AVG;
    bucket.reduced =
        dist::all_reduce(bucket.buffer, {.op = op, .group = options_.group, .async_op = true})->get_future();
  }
  bucket.reduced->add_done_callback(
      [mark = times_.end_mark()](const dist::Future&) { IterationTimes::reduction_ended(*mark); });
}

void Reducer::settle_the_rest() {
  const bool is_first_of_static_graph = options_.static_graph && !knows_graph_;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (!is_trainable(i) || slot.is_ready) continue;
    if (is_first_of_static_graph) {
      slot.expected_firings = slot.firings;
      settle(i, slot.firings > 0);
    } else if (options_.static_graph) {
      throw dist::DistError(std::string(kGraphChanged) + " It concerns " + names_of({i}) + ".");
    } else if (options_.find_unused_parameters || is_shadow_) {
      settle(i, false);
    } else {
      missing.push_back(i);
    }
  }
  if (!missing.empty()) {
    throw dist::DistError(
        "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates "
        "that your module has parameters that were not used in producing loss. You can enable unused parameter "
        "detection by passing find_unused_parameters = true. Parameters which did not receive grad for rank " +
        std::to_string(options_.group->rank()) + ": " + names_of(missing));
  }
  launch_full();
}

void Reducer::finish() {
  const std::lock_guard lock(mutex_);
  if (!is_in_pass_) return;
  if (!pass_.reduces) return end_pass();
  try {
    if (ready_order_.empty()) times_.first_gradient();
    for (Bucket& bucket : buckets_) bucket.is_let_go = true;
    settle_the_rest();
    times_.backward_ended();
    used_somewhere_ = ask_who_used();
    bring_back();
    learn_order();
  } catch (...) {
    is_broken_ = true;
    end_pass();
    throw;
  }
  if (pass_.is_timed && !is_shadow_) times_.iteration_ended();
  for (Slot& slot : slots_) slot.is_touched = false;
  end_pass();
}

void Reducer::end_pass() {
  is_in_pass_ = false;
  ready_order_.clear();
}

void Reducer::shadow(const Pass& pass) {
  is_shadow_ = true;
  for (Slot& slot : slots_) slot.is_touched = false;
  begin(pass);
  finish();
  is_shadow_ = false;
}

std::vector<bool> Reducer::ask_who_used() {
  std::vector<bool> used(slots_.size(), true);
  if (!options_.find_unused_parameters && !options_.static_graph) return used;
  if (options_.skip_all_reduce_unused_params) return used;
  if (options_.static_graph && knows_graph_) return used_somewhere_;
  // Only when all buckets are through: a hook may use the group from a thread of its own until then.
  for (const Bucket& bucket : buckets_) bucket.reduced->wait_for(options_.group->timeout());
  Tensor map = zeros({static_cast<std::int64_t>(slots_.size())}, DType::kInt32);
  const auto flags = map.span<std::int32_t>();
  for (std::size_t i = 0; i < slots_.size(); ++i) flags[i] = slots_[i].is_used ? 1 : 0;
  dist::all_reduce(map, {.op = dist::ReduceOp::MAX, .group = options_.group});
  unused_bytes_ = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    used[i] = flags[i] != 0;
    if (!slots_[i].is_used && is_trainable(i)) unused_bytes_ += model_.parameters[i].value.nbytes();
  }
  return used;
}

void Reducer::bring_back() {
  for (std::size_t index = 0; index < buckets_.size(); ++index) {
    Bucket& bucket = buckets_[index];
    const auto limit = options_.group->timeout() * static_cast<int>(buckets_.size() + 1);
    if (!bucket.reduced->wait_for(limit)) {
      throw dist::DistError("DistributedDataParallel: the reduction of bucket " + std::to_string(index) +
                            " is not complete after " + std::to_string(limit.count()) + " ms");
    }
    const auto result = bucket.reduced->value();
    if (result.size() != 1 || result.front().numel() != bucket.buffer.numel()) {
      throw dist::InvalidArgument("the communication hook of bucket " + std::to_string(index) +
                                  " did not return one tensor of the bucket's size");
    }
    if (result.front().data() != bucket.buffer.data()) {
      bucket.buffer.copy_(result.front().reshape(bucket.buffer.shape()));
    }
    bucket.reduced.reset();
    if (!hook_ && pass_.divisor > 0) bucket.buffer.mul_(1.0 / pass_.divisor);
    if (options_.gradient_as_bucket_view || is_shadow_) continue;
    for (const auto parameter : bucket.parameters) {
      if (used_somewhere_[parameter]) model_.parameters[parameter].gradient.copy_(slots_[parameter].view);
    }
  }
  for (auto& [parameter, before] : set_aside_) {
    if (!used_somewhere_[parameter]) slots_[parameter].view.copy_(before);
  }
}

/// After the first reduction: buckets in the order in which gradients come, one rank's order for all.
void Reducer::learn_order() {
  if (knows_graph_) return;
  knows_graph_ = true;
  if (options_.find_unused_parameters && !options_.static_graph) return;
  std::vector<std::int64_t> order(ready_order_.begin(), ready_order_.end());
  for (std::size_t i = slots_.size(); i-- > 0;) {
    const auto place = static_cast<std::int64_t>(i);
    if (is_trainable(i) && std::find(order.begin(), order.end(), place) == order.end()) order.push_back(place);
  }
  dist::broadcast(Tensor::from_span(std::span(order)), {.group = options_.group, .group_src = pass_.order_source});
  assign({order.begin(), order.end()});
  has_rebuilt_ = true;
}

std::vector<std::size_t> Reducer::bucket_bytes() const {
  std::vector<std::size_t> sizes;
  for (const Bucket& bucket : buckets_) {
    std::size_t bytes = 0;
    for (const auto parameter : bucket.parameters) bytes += model_.parameters[parameter].value.nbytes();
    sizes.push_back(bytes);
  }
  return sizes;
}

std::string Reducer::names_of(const std::vector<std::size_t>& parameters) const {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < parameters.size() && i < kMost; ++i) {
    text.append(i == 0 ? "" : ", ").append(model_.parameters[parameters[i]].name);
    text.append(" (" + std::to_string(parameters[i]) + ")");
  }
  if (parameters.size() > kMost) text += " and " + std::to_string(parameters.size() - kMost) + " more";
  return text;
}

}  // namespace tensorplay::nn::parallel
