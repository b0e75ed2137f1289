#include "tensorplay/nn/parallel/distributed_data_parallel.hpp"

#include "runtime/base/log.hpp"
#include "runtime/parallel/model_sync.hpp"
#include "runtime/parallel/reducer.hpp"
#include "tensorplay/distributed/algorithms/ddp_comm_hooks.hpp"
#include "tensorplay/distributed/collectives.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace tensorplay::nn::parallel {
namespace {

namespace dist = distributed;

constexpr std::size_t kMebi = std::size_t{1024} * 1024;
constexpr int kSkewToWarnOf = 1000;

void check_model(const Model& model, const DistributedDataParallelOptions& options) {
  bool is_trainable = false;
  std::set<DeviceType> types;
  std::set<std::string> names;
  for (const Parameter& parameter : model.parameters) {
    const std::string who = "DistributedDataParallel: parameter \"" + parameter.name + "\"";
    if (!parameter.value.defined()) throw dist::InvalidArgument(who + " is not defined");
    if (!names.insert(parameter.name).second) throw dist::InvalidArgument(who + " is listed twice");
    types.insert(parameter.value.device().type);
    if (!parameter.requires_grad) continue;
    is_trainable = true;
    if (!is_floating_point(parameter.value.dtype())) throw dist::InvalidArgument(who + " is no floating point tensor");
    if (options.gradient_as_bucket_view && parameter.set_gradient) continue;
    if (!parameter.gradient.defined()) {
      throw dist::InvalidArgument(who + " has no gradient; give one, or set_gradient with gradient_as_bucket_view");
    }
    if (options.gradient_as_bucket_view) {
      throw dist::InvalidArgument(who + " needs set_gradient: gradient_as_bucket_view moves its gradient");
    }
    if (parameter.gradient.shape() != parameter.value.shape() ||
        parameter.gradient.dtype() != parameter.value.dtype()) {
      throw dist::InvalidArgument(who + " and its gradient differ in shape or dtype");
    }
  }
  if (!is_trainable) {
    throw dist::InvalidArgument(
        "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.");
  }
  if (options.device_ids.size() > 1) {
    throw dist::InvalidArgument("device_ids can only be None or contain a single element.");
  }
  if (types.size() > 1) {
    throw dist::InvalidArgument(
        "DistributedDataParallel's input module must be on the same type of devices, but input module parameters "
        "locate in " +
        std::string(to_string(*types.begin())) + " and " + std::string(to_string(*types.rbegin())) + ".");
  }
  const bool is_on_cpu = *types.begin() == DeviceType::kCPU;
  if (is_on_cpu && (!options.device_ids.empty() || options.output_device)) {
    throw dist::InvalidArgument(
        "DistributedDataParallel device_ids and output_device arguments only work with single-device GPU modules; "
        "the module's parameters are on the CPU");
  }
  if (!is_on_cpu) {
    throw dist::NotImplementedError("DistributedDataParallel: this build averages gradients on the CPU only");
  }
}

std::size_t index_of(const Model& model, const std::string& name, const char* option) {
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    if (model.parameters[i].name == name && model.parameters[i].requires_grad) return i;
  }
  throw dist::InvalidArgument(std::string(option) + ": no trainable parameter is named \"" + name + "\"");
}

std::vector<std::size_t> bucket_caps(const DistributedDataParallelOptions& options) {
  std::vector<std::size_t> caps;
  for (const double mebi : options.bucket_cap_mb_list) {
    if (mebi <= 0) throw dist::InvalidArgument("bucket_cap_mb_list: sizes have to be positive");
    caps.push_back(static_cast<std::size_t>(mebi * static_cast<double>(kMebi)));
  }
  if (!caps.empty()) return caps;
  if (options.bucket_cap_mb == std::size_t{0}) throw dist::InvalidArgument("bucket_cap_mb has to be positive");
  const std::size_t cap = options.bucket_cap_mb.value_or(kDefaultBucketCapMb) * kMebi;
  return {std::min(cap, kDefaultFirstBucketBytes), cap};
}

ReducerOptions reducer_options(const Model& model, const DistributedDataParallelOptions& options,
                               const dist::Group& group) {
  ReducerOptions result;
  result.group = group;
  result.bucket_caps = bucket_caps(options);
  result.find_unused_parameters = options.find_unused_parameters;
  result.gradient_as_bucket_view = options.gradient_as_bucket_view;
  result.static_graph = options.static_graph;
  result.skip_all_reduce_unused_params = options.skip_all_reduce_unused_params;
  result.batched_grad_copy = options.batched_grad_copy;
  result.lazy_bucket_allocation = options.lazy_bucket_allocation;
  if (options.delay_all_reduce_named_params.empty() != options.param_to_hook_all_reduce.empty()) {
    throw dist::InvalidArgument(
        "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time.");
  }
  for (const auto& name : options.delay_all_reduce_named_params) {
    result.delayed.push_back(index_of(model, name, "delay_all_reduce_named_params"));
  }
  if (!options.param_to_hook_all_reduce.empty()) {
    result.delay_trigger = index_of(model, options.param_to_hook_all_reduce, "param_to_hook_all_reduce");
  }
  return result;
}

std::string text_of(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (const auto number : numbers) text.append(text.empty() ? "" : ", ").append(std::to_string(number));
  return text;
}

std::vector<Tensor> values_of(const Model& model, bool with_parameters) {
  std::vector<Tensor> values;
  if (with_parameters) {
    for (const auto& parameter : model.parameters) values.push_back(parameter.value);
  }
  for (const auto& buffer : model.buffers) values.push_back(buffer.value);
  return values;
}

}  // namespace

struct DistributedDataParallel::State {
  State(Model the_model, DistributedDataParallelOptions the_options)
      : model(std::move(the_model)),
        options(std::move(the_options)),
        group(options.process_group ? options.process_group : dist::get_default_group()) {
    check_model(model, options);
    auto reduction = reducer_options(model, options, group);
    const bool syncs_buffers = options.forward_sync_buffers.value_or(options.broadcast_buffers.value_or(true));
    const bool syncs_buffers_at_start = options.forward_sync_buffers || options.broadcast_buffers.value_or(true);
    forward_syncs_buffers = syncs_buffers && !model.buffers.empty();
    if (options.init_sync) {
      check_same_model(model, group);
      Model synced = model;
      if (!syncs_buffers_at_start) synced.buffers.clear();
      broadcast_coalesced(values_of(synced, true), 0, group);
    }
    reducer = std::make_unique<Reducer>(model, std::move(reduction));
    first_bucket_bytes = reducer->bucket_bytes();
    if (options.mixed_precision_reduce_dtype) {
      namespace hooks = dist::algorithms::ddp_comm_hooks;
      reducer->set_hook(hooks::compress_hook(*options.mixed_precision_reduce_dtype, group));
    }
  }

  /// What a rank says of its next iteration, and what all say.
  struct Roll {
    std::vector<int> active;  ///< Group ranks that have inputs.
    bool reduces = false;
    int most_iterations = 0;
    int first_with_most = 0;
  };

  Roll call_roll(bool is_active, bool reduces) {
    constexpr std::int64_t kFields = 3;
    Tensor own = tensor<std::int32_t>({is_active ? 1 : 0, reduces ? 1 : 0, iterations_in_join});
    Tensor all = empty({group->size() * kFields}, DType::kInt32);
    dist::all_gather_single(all, own, {.group = group});
    Roll roll;
    int reducing = 0;
    for (int rank = 0; rank < group->size(); ++rank) {
      const std::int32_t* said = all.data<std::int32_t>() + rank * kFields;
      if (said[2] > roll.most_iterations) {
        roll.most_iterations = said[2];
        roll.first_with_most = rank;
      }
      if (said[0] == 0) continue;
      roll.active.push_back(rank);
      reducing += said[1];
    }
    if (reducing != 0 && reducing != static_cast<int>(roll.active.size())) {
      throw dist::DistError("DistributedDataParallel: some ranks are within no_sync and others are not");
    }
    roll.reduces = reducing > 0;
    if (join_options.throw_on_early_termination && !roll.active.empty() &&
        static_cast<int>(roll.active.size()) < group->size()) {
      throw dist::DistError(is_active ? "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                                      : "Rank " + std::to_string(group->rank()) + " exhausted all inputs.");
    }
    return roll;
  }

  Reducer::Pass pass_for(bool reduces, const Roll* roll) {
    Reducer::Pass pass;
    pass.reduces = reduces;
    if (roll != nullptr) {
      pass.order_source = roll->active.front();
      if (!join_options.divide_by_initial_world_size) pass.divisor = static_cast<double>(roll->active.size());
    }
    pass.is_timed = iterations < 10 || iterations % sample_every == 0;
    return pass;
  }

  void begin_pass() {
    if (is_in_join) {
      const Roll roll = call_roll(true, require_sync);
      ++iterations_in_join;
      if (require_sync && forward_syncs_buffers) {
        broadcast_coalesced(values_of(model, false), roll.active.front(), group);
      }
      reducer->begin(pass_for(require_sync, &roll));
      return;
    }
    if (require_sync && forward_syncs_buffers) broadcast_coalesced(values_of(model, false), 0, group);
    reducer->begin(pass_for(require_sync, nullptr));
  }

  /// Takes part in the iterations of those that still have inputs.
  void shadow_the_others() {
    int shadowed = 0;
    while (true) {
      const Roll roll = call_roll(false, false);
      if (roll.active.empty()) {
        // Every rank sees the same roll, so all or none take part.
        broadcast_coalesced(values_of(model, true), roll.first_with_most, group);
        return;
      }
      if (++shadowed == kSkewToWarnOf) {
        base::log::warning("DistributedDataParallel: this rank ran out of inputs 1000 iterations before others");
      }
      if (!roll.reduces) continue;
      if (forward_syncs_buffers) broadcast_coalesced(values_of(model, false), roll.active.front(), group);
      reducer->shadow(pass_for(true, &roll));
    }
  }

  Model model;
  DistributedDataParallelOptions options;
  dist::Group group;
  std::unique_ptr<Reducer> reducer;
  std::vector<std::size_t> first_bucket_bytes;
  bool forward_syncs_buffers = false;
  bool require_sync = true;
  std::string hook_name;
  std::int64_t iterations = 0;
  int sample_every = 100;
  bool is_in_join = false;
  int iterations_in_join = 0;
  JoinOptions join_options;
};

DistributedDataParallel::DistributedDataParallel(Model model, DistributedDataParallelOptions options)
    : state_(std::make_unique<State>(std::move(model), std::move(options))) {
  base::log::debug([&] {
    std::string text = "DistributedDataParallel is made:";
    for (const auto& [name, value] : get_ddp_logging_data()) text.append(" ").append(name).append("=").append(value);
    return text;
  });
}
DistributedDataParallel::~DistributedDataParallel() = default;
DistributedDataParallel::DistributedDataParallel(DistributedDataParallel&&) noexcept = default;
DistributedDataParallel& DistributedDataParallel::operator=(DistributedDataParallel&&) noexcept = default;

void DistributedDataParallel::forward() {
  if (state_->reducer->has_unfinished_gradients()) {
    throw dist::DistError(
        "Expected to have finished reduction in the prior iteration before starting a new one: call "
        "finalize_backward() after each backward pass");
  }
  state_->begin_pass();
  state_->reducer->forward_began();
}

void DistributedDataParallel::mark_ready(std::size_t parameter) {
  if (!state_->reducer->is_in_pass()) state_->begin_pass();  // A backward pass without forward().
  state_->reducer->mark_ready(parameter);
}

void DistributedDataParallel::mark_unused(std::size_t parameter) {
  if (!state_->reducer->is_in_pass()) state_->begin_pass();
  state_->reducer->mark_unused(parameter);
}

void DistributedDataParallel::finalize_backward() {
  if (!state_->reducer->is_in_pass()) state_->begin_pass();  // Nothing was used at all.
  state_->reducer->finish();
  ++state_->iterations;
}

DistributedDataParallel::NoSync::NoSync(DistributedDataParallel& ddp)
    : ddp_(ddp), before_(std::exchange(ddp.state_->require_sync, false)) {}
DistributedDataParallel::NoSync::~NoSync() {
  ddp_.state_->require_sync = before_;
}

bool DistributedDataParallel::require_backward_grad_sync() const noexcept {
  return state_->require_sync;
}

void DistributedDataParallel::join(const std::function<void()>& loop, const JoinOptions& options) {
  if (!options.enable) return loop();
  State& state = *state_;
  if (state.is_in_join) throw dist::InvalidArgument("join: already within one");
  state.join_options = options;
  state.iterations_in_join = 0;
  state.is_in_join = true;
  try {
    loop();
    state.shadow_the_others();
  } catch (...) {
    state.is_in_join = false;
    throw;
  }
  state.is_in_join = false;
}

void DistributedDataParallel::register_comm_hook(CommHook hook, std::string name) {
  if (!hook) throw dist::InvalidArgument("Communication hook must be callable.");
  if (state_->reducer->has_hook()) {
    throw dist::DistError("register_comm_hook or register_builtin_comm_hook can only be called once.");
  }
  state_->hook_name = std::move(name);
  state_->reducer->set_hook(std::move(hook));
}

Tensor DistributedDataParallel::gradient(std::size_t parameter) const {
  return state_->reducer->gradient(parameter);
}

bool DistributedDataParallel::was_used_somewhere(std::size_t parameter) const {
  return state_->reducer->was_used_somewhere(parameter);
}

const Model& DistributedDataParallel::model() const noexcept {
  return state_->model;
}

const dist::Group& DistributedDataParallel::process_group() const noexcept {
  return state_->group;
}

void DistributedDataParallel::set_ddp_runtime_logging_sample_rate(int every) {
  if (every <= 0) throw dist::InvalidArgument("set_ddp_runtime_logging_sample_rate: the rate has to be positive");
  state_->sample_every = every;
}

std::map<std::string, std::string> DistributedDataParallel::get_ddp_logging_data() const {
  const State& state = *state_;
  const Reducer& reducer = *state.reducer;
  std::map<std::string, std::string> data;
  const auto set = [&](const char* name, auto value) { data[name] = std::to_string(value); };
  std::size_t bytes = 0;
  std::size_t tensors = 0;
  std::set<std::string> dtypes;
  for (const auto& parameter : state.model.parameters) {
    if (!parameter.requires_grad) continue;
    bytes += parameter.value.nbytes();
    ++tensors;
    dtypes.insert(std::string(to_string(parameter.value.dtype())));
  }
  set("world_size", state.group->size());
  set("rank", state.group->rank());
  data["module_name"] = "Model";
  data["backend_name"] = state.group->backend_config();
  data["device_ids"] = "";
  data["dtypes"] = dtypes.size() == 1 ? *dtypes.begin() : "mixed";
  set("total_parameter_size_bytes", bytes);
  set("num_parameter_tensors", tensors);
  set("num_buffer_tensors", state.model.buffers.size());
  set("bucket_cap_bytes", bucket_caps(state.options).back());
  set("find_unused_parameters", int{state.options.find_unused_parameters});
  set("gradient_as_bucket_view", int{state.options.gradient_as_bucket_view});
  set("static_graph", int{state.options.static_graph});
  set("broadcast_buffers", int{state.forward_syncs_buffers});
  data["comm_hook"] = state.hook_name;
  data["bucket_sizes"] = text_of(state.first_bucket_bytes);
  set("has_rebuilt_buckets", int{reducer.has_rebuilt_buckets()});
  data["rebuilt_bucket_sizes"] = reducer.has_rebuilt_buckets() ? text_of(reducer.bucket_bytes()) : "";
  set("num_iterations", state.iterations);
  set("unused_parameter_size", reducer.unused_bytes());
  const auto& sums = reducer.times().sums();
  const auto mean = [&](std::int64_t sum) { return sums.iterations == 0 ? 0 : sum / sums.iterations; };
  set("avg_forward_compute_time", mean(sums.forward_ns));
  set("avg_backward_compute_time", mean(sums.backward_ns));
  set("avg_backward_comm_time", mean(sums.communication_ns));
  set("avg_backward_compute_comm_overlap_time", mean(sums.overlap_ns));
  return data;
}

}  // namespace tensorplay::nn::parallel
