#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include <tensorplay/distributed/backend.hpp>

namespace relay {

namespace dist = tensorplay::distributed;
using tensorplay::Tensor;

/// A backend whose ranks write to and read from the store that they share: slow, and whole in 150 lines.
///
/// What a backend has to know: override what it can do and list that in its traits; the rest is refused by the base
/// class with a NotImplementedError, and the *_single and *_coalesced calls are composed of what is there. Each call
/// returns a Work; this one has carried the operation out by then. Sizes and dtypes have been checked as far as one
/// rank can. Thread rules: as Backend's; a lock keeps operations in order.
class RelayBackend final : public dist::Backend {
 public:
  explicit RelayBackend(dist::BackendOptions options);

  static dist::BackendTraits traits();

  std::string name() const override { return "relay"; }

  WorkPtr broadcast(const Tensor& tensor, int root, const dist::CallOptions& call) override;
  WorkPtr all_reduce(const Tensor& tensor, const dist::ReduceOp& op, const dist::CallOptions& call) override;
  WorkPtr all_gather(const Tensors& outputs, const Tensor& input, const dist::CallOptions& call) override;
  WorkPtr gather(const Tensors& outputs, const Tensor& input, int root, const dist::CallOptions& call) override;
  WorkPtr scatter(const Tensor& output, const Tensors& inputs, int root, const dist::CallOptions& call) override;
  WorkPtr all_to_all(const Tensors& outputs, const Tensors& inputs, const dist::CallOptions& call) override;
  WorkPtr barrier(const dist::CallOptions& call) override;
  WorkPtr send(const Tensor& tensor, int destination, int tag, const dist::CallOptions& call) override;
  WorkPtr recv(const Tensor& tensor, int source, int tag, const dist::CallOptions& call) override;

  void abort(const std::string& why) override;

 private:
  using Limit = std::chrono::milliseconds;

  /// Carries out one operation and keeps what came of it in a Work. `run` gets the operation's own key.
  WorkPtr carry_out(const char* operation, const dist::CallOptions& call,
                    const std::function<Tensors(const std::string& key, Limit limit)>& run);

  void put(const std::string& key, const Tensor& tensor);

  /// Waits for the message of rank `from`; the last of `readers` takes it away.
  void take(const std::string& key, int from, int readers, const Tensor& into, Limit limit);

  std::mutex mutex_;
  std::uint64_t sequence_ = 0;
  std::string aborted_;
};

}  // namespace relay
