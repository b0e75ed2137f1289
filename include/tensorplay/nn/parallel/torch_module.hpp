/// DistributedDataParallel for libtorch's C++ modules. Header-only: include it in a program that links libtorch too.
///
///     auto model = std::make_shared<Net>();
///     TorchDistributedDataParallel<Net> ddp(model);
///     torch::optim::SGD optimizer(model->parameters(), 0.1);
///     for (...) {
///       optimizer.zero_grad();
///       auto loss = loss_of(ddp.forward(input), target);
///       loss.backward();                 // gradients are the ranks' averages when it returns
///       optimizer.step();
///     }
///
/// libtorch has no such thing in C++. Its C++ ABI has to be this library's: every PyTorch since 2.7 and Debian's
/// libtorch use the new one of GCC (_GLIBCXX_USE_CXX11_ABI=1); with an older one the compiler stops here.
#pragma once

#include "tensorplay/distributed/algorithms/ddp_comm_hooks.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/nn/parallel/distributed_data_parallel.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/torch.h>

static_assert(_GLIBCXX_USE_CXX11_ABI == 1, "this libtorch was built with the old C++ ABI of GCC, which does not fit");

namespace tensorplay::nn::parallel {

/// libtorch's element type as ours; InvalidArgument for one that does not travel.
inline DType dtype_of_torch(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return DType::kUInt8;
    case at::kChar:
      return DType::kInt8;
    case at::kShort:
      return DType::kInt16;
    case at::kInt:
      return DType::kInt32;
    case at::kLong:
      return DType::kInt64;
    case at::kHalf:
      return DType::kFloat16;
    case at::kBFloat16:
      return DType::kBFloat16;
    case at::kFloat:
      return DType::kFloat32;
    case at::kDouble:
      return DType::kFloat64;
    case at::kBool:
      return DType::kBool;
    default:
      throw distributed::InvalidArgument(std::string("tensors of ") + c10::toString(type) + " cannot be sent");
  }
}

/// The same elements, without a copy: `tensor` has to outlive what is returned. CPU only.
inline Tensor borrow(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu()) throw distributed::InvalidArgument("borrow: the tensor is not on the CPU");
  return Tensor::from_pointer(tensor.data_ptr(), dtype_of_torch(tensor.scalar_type()),
                              Shape(tensor.sizes().begin(), tensor.sizes().end()),
                              Shape(tensor.strides().begin(), tensor.strides().end()));
}

/// A libtorch module trained on all ranks; DistributedDataParallel tells how.
///
/// Gradients are views of the buckets; zero_grad may keep or drop them. Frozen parameters are left out. Thread rules
/// and errors: those of DistributedDataParallel; errors of the reduction come out of backward().
template <typename Module>
class TorchDistributedDataParallel {
 public:
  /// gradient_as_bucket_view is always on.
  explicit TorchDistributedDataParallel(std::shared_ptr<Module> module, DistributedDataParallelOptions options = {})
      : state_(std::make_shared<State>(std::move(module))) {
    options.gradient_as_bucket_view = true;
    state_->finds_unused = options.find_unused_parameters;
    state_->start(std::move(options));
  }

  /// The module's forward, with buffers brought up to date before, and (find_unused_parameters) the graph of the result
  /// searched for parameters that had no part.
  template <typename... Arguments>
  auto forward(Arguments&&... arguments) {
    if (torch::GradMode::is_enabled()) state_->ddp->forward();
    auto result = state_->module->forward(std::forward<Arguments>(arguments)...);
    if constexpr (std::is_same_v<decltype(result), at::Tensor>) {
      if (state_->finds_unused && torch::GradMode::is_enabled()) state_->mark_unused(result);
    }
    return result;
  }
  template <typename... Arguments>
  auto operator()(Arguments&&... arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  /// Called by the autograd engine at the end of backward(); needed by hand only when no parameter of this rank had a
  /// part in the loss.
  void finalize_backward() { state_->finalize(); }

  [[nodiscard]] DistributedDataParallel::NoSync no_sync() { return state_->ddp->no_sync(); }
  void join(const std::function<void()>& loop, const JoinOptions& options = {}) { state_->ddp->join(loop, options); }
  void register_comm_hook(CommHook hook, std::string name = "custom") {
    state_->ddp->register_comm_hook(std::move(hook), std::move(name));
  }

  const std::shared_ptr<Module>& module() const { return state_->module; }
  DistributedDataParallel& ddp() { return *state_->ddp; }

 private:
  /// A shared_ptr, or in newer releases libtorch's own kind.
  using NodePtr = decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

  struct State : std::enable_shared_from_this<State> {
    explicit State(std::shared_ptr<Module> the_module) : module(std::move(the_module)) {}

    ~State() {
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i]) nodes[i]->del_post_hook(hooks[i]);
      }
      // The buckets go: gradients in them get memory of their own.
      for (auto& parameter : parameters) {
        if (parameter.grad().defined()) parameter.mutable_grad() = parameter.grad().clone();
      }
    }

    void start(DistributedDataParallelOptions options) {
      Model model;
      for (const auto& item : module->named_parameters()) {
        const std::size_t index = parameters.size();
        parameters.push_back(item.value());
        views.emplace_back();
        model.parameters.push_back({.name = item.key(),
                                    .value = borrow(item.value()),
                                    .set_gradient = [this, index](const Tensor& place) { move_gradient(index, place); },
                                    .requires_grad = item.value().requires_grad()});
      }
      for (const auto& item : module->named_buffers()) {
        buffers.push_back(item.value());
        model.buffers.push_back({item.key(), borrow(item.value())});
      }
      ddp = std::make_unique<DistributedDataParallel>(std::move(model), std::move(options));
      for (std::size_t i = 0; i < parameters.size(); ++i) watch(i);
    }

    /// Calls ready(i) when the engine has accumulated gradient i.
    void watch(std::size_t i) {
      nodes.emplace_back();
      hooks.emplace_back();
      if (!parameters[i].requires_grad()) return;
      nodes[i] = torch::autograd::impl::grad_accumulator(parameters[i]);
      hooks[i] = nodes[i]->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [weak = this->weak_from_this(), i](const auto& outputs, const auto&) {
            if (const auto state = weak.lock()) state->ready(i);
            return outputs;
          }));
    }

    void move_gradient(std::size_t i, const Tensor& place) {
      keepers.resize(parameters.size());
      keepers[i] = place;
      views[i] = at::from_blob(place.data(), parameters[i].sizes(), parameters[i].options().requires_grad(false));
      if (parameters[i].grad().defined()) parameters[i].mutable_grad() = views[i];
    }

    void ready(std::size_t i) {
      at::Tensor& gradient = parameters[i].mutable_grad();
      if (gradient.data_ptr() != views[i].data_ptr()) {  // zero_grad had dropped it.
        const torch::NoGradGuard no_grad;
        views[i].copy_(gradient);
        gradient = views[i];
      }
      if (!is_queued.exchange(true)) {
        torch::autograd::Engine::get_default_engine().queue_callback([weak = this->weak_from_this()] {
          if (const auto state = weak.lock()) state->finalize();
        });
      }
      ddp->mark_ready(i);
    }

    void finalize() {
      is_queued = false;
      ddp->finalize_backward();
      if (!finds_unused || !ddp->require_backward_grad_sync()) return;
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (ddp->was_used_somewhere(i)) parameters[i].mutable_grad() = views[i];
      }
    }

    void mark_unused(const at::Tensor& result) {
      std::unordered_set<const torch::autograd::Node*> seen;
      std::vector<const torch::autograd::Node*> left;
      if (const auto& root = result.grad_fn()) left.push_back(root.get());
      while (!left.empty()) {
        const auto* node = left.back();
        left.pop_back();
        if (!seen.insert(node).second) continue;
        for (const auto& edge : node->next_edges()) {
          if (edge.function) left.push_back(edge.function.get());
        }
      }
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (nodes[i] && !seen.contains(nodes[i].get())) ddp->mark_unused(i);
      }
    }

    std::shared_ptr<Module> module;
    std::vector<at::Tensor> parameters;
    std::vector<at::Tensor> buffers;
    std::vector<at::Tensor> views;  // Where each gradient is.
    std::vector<Tensor> keepers;    // Keep the views' memory.
    std::vector<NodePtr> nodes;
    std::vector<std::uintptr_t> hooks;
    std::unique_ptr<DistributedDataParallel> ddp;
    std::atomic<bool> is_queued = false;
    bool finds_unused = false;
  };

  std::shared_ptr<State> state_;
};

}  // namespace tensorplay::nn::parallel
