#pragma once

#include "tensorplay/distributed/device.hpp"
#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/reduce_op.hpp"
#include "tensorplay/distributed/store.hpp"
#include "tensorplay/distributed/tensor.hpp"
#include "tensorplay/distributed/work.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::distributed {

/// What a backend is made from.
struct BackendOptions {
  std::shared_ptr<Store> store = {};        ///< This backend's own name space, empty at the start.
  int rank = 0;                             ///< Rank in the group.
  int size = 1;                             ///< Members of the group.
  std::chrono::milliseconds timeout{0};     ///< Default limit of each operation.
  std::chrono::milliseconds init_limit{0};  ///< How long making it may take at most.
  std::string group_name = {};
  std::vector<int> global_ranks = {};  ///< Global rank of each member.
  std::optional<Device> bound_device = {};
};

/// How one operation is to be carried out.
struct CallOptions {
  std::chrono::milliseconds timeout{0};  ///< Zero: the group's.
  bool async_op = false;                 ///< False: complete, or thrown, when the call returns.
};

/// Carries out a group's operations on one kind of device.
///
/// Every operation returns its Work. What a backend does not override throws NotImplementedError with the backend's
/// and the operation's name, before anything is sent. Ranks are ranks of the group; sizes and dtypes have been checked
/// by the caller as far as one rank can. After an operation has failed all later ones throw DistBackendError.
/// Thread rules: every method may be called from any thread; operations run one after the other in the order of the
/// calls, which has to be the same on all ranks. send and recv stand outside that order.
/// Source of the semantics: c10d's Backend.
class TP_API Backend {
 public:
  explicit Backend(BackendOptions options);
  virtual ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual std::string name() const = 0;
  int rank() const noexcept { return options_.rank; }
  int size() const noexcept { return options_.size; }
  const BackendOptions& options() const noexcept { return options_; }
  std::chrono::milliseconds timeout() const noexcept { return options_.timeout; }

  using WorkPtr = std::shared_ptr<Work>;

  virtual WorkPtr broadcast(const Tensor& tensor, int root, const CallOptions& call);
  virtual WorkPtr all_reduce(const Tensor& tensor, const ReduceOp& op, const CallOptions& call);
  virtual WorkPtr reduce(const Tensor& tensor, int root, const ReduceOp& op, const CallOptions& call);
  virtual WorkPtr all_gather(const std::vector<Tensor>& outputs, const Tensor& input, const CallOptions& call);
  virtual WorkPtr all_gather_single(const Tensor& output, const Tensor& input, const CallOptions& call);
  virtual WorkPtr reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs, const ReduceOp& op,
                                 const CallOptions& call);
  virtual WorkPtr reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOp& op,
                                        const CallOptions& call);
  virtual WorkPtr barrier(const CallOptions& call);
  virtual WorkPtr send(const Tensor& tensor, int destination, int tag, const CallOptions& call);
  virtual WorkPtr recv(const Tensor& tensor, int source, int tag, const CallOptions& call);

  /// Ends every operation, now and later, with DistBackendError, and closes the connections. Waits for nobody.
  virtual void abort(const std::string& why);

  /// Lets what is queued finish for a few seconds, then aborts the rest. Waits for no peer beyond that.
  virtual void shutdown();

  using Creator = std::function<std::shared_ptr<Backend>(const BackendOptions& options)>;

  /// Makes `name` (lower case) usable in init_process_group for tensors of `devices`. A second registration of a name
  /// replaces the first.
  static void register_backend(const std::string& name, Creator creator, std::vector<DeviceType> devices);

 protected:
  /// The limit of one operation: the call's timeout, else the group's.
  std::chrono::milliseconds limit_of(const CallOptions& call) const noexcept;

 private:
  BackendOptions options_;
};

/// Whether a backend of that name can be made in this build.
TP_API bool is_backend_available(std::string_view name);

}  // namespace tensorplay::distributed
