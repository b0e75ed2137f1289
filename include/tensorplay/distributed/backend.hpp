#pragma once

#include "tensorplay/distributed/device.hpp"
#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/op_type.hpp"
#include "tensorplay/distributed/reduce_op.hpp"
#include "tensorplay/distributed/store.hpp"
#include "tensorplay/distributed/tensor.hpp"
#include "tensorplay/distributed/work.hpp"

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tensorplay::distributed {

class Backend;
class ProcessGroup;

/// Changes whenever a backend that was compiled against older headers could not work with this library.
inline constexpr std::uint32_t kBackendAbiVersion = 1;

/// What a caller of init_process_group or new_group asks of one backend (`pg_options`); each backend derives its own
/// and ignores those of others.
class TP_API PGOptions {
 public:
  PGOptions() = default;
  virtual ~PGOptions();
};

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
  std::string group_desc = {};
  std::shared_ptr<Store> group_store = {};  ///< The group's, for a creator that returns a whole ProcessGroup.
  std::shared_ptr<const PGOptions> pg_options = {};
};

/// How one operation is to be carried out.
struct CallOptions {
  std::chrono::milliseconds timeout{0};  ///< Zero: the group's.
  bool async_op = false;                 ///< False: complete, or thrown, when the call returns.
};

/// What can be said of a backend before one is made.
struct BackendTraits {
  std::vector<DeviceType> devices = {};
  std::set<OpType> operations = {};  ///< Empty: not told; each call shows.

  /// For a backend that knows rank and size by itself, as MPI does: the store that its ranks share, rank and size.
  struct Meeting {
    std::shared_ptr<Store> store = {};
    int rank = -1;
    int size = -1;
  };
  std::function<Meeting(std::chrono::milliseconds limit)> meet = {};

  /// Nobody waits for anybody when a group is made: for tests of programs that are alone.
  bool has_no_peers = false;
};

/// What a creator made: a backend, or a whole group that brings its backends; neither when this rank is no member.
struct MadeBackend {
  std::shared_ptr<Backend> backend = {};
  std::shared_ptr<ProcessGroup> group = {};

  MadeBackend() = default;
  MadeBackend(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  template <std::convertible_to<std::shared_ptr<Backend>> Made>
  MadeBackend(Made made) : backend(std::move(made)) {}  // NOLINT(google-explicit-constructor)
  template <std::convertible_to<std::shared_ptr<ProcessGroup>> Made>
  MadeBackend(Made made) : group(std::move(made)) {}  // NOLINT(google-explicit-constructor)
};

/// Carries out a group's operations on one kind of device.
///
/// Every operation returns its Work. What a backend does not override throws NotImplementedError with the backend's
/// and the operation's name, before anything is sent; the *_single and *_coalesced calls are then composed of the
/// others. Ranks are ranks of the group; sizes and dtypes have been checked by the caller as far as one rank can. After
/// an operation has failed all later ones throw DistBackendError.
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
  std::chrono::milliseconds timeout() const noexcept { return timeout_.load(std::memory_order_relaxed); }

  using WorkPtr = std::shared_ptr<Work>;
  using Tensors = std::vector<Tensor>;

  virtual WorkPtr broadcast(const Tensor& tensor, int root, const CallOptions& call);
  virtual WorkPtr all_reduce(const Tensor& tensor, const ReduceOp& op, const CallOptions& call);
  virtual WorkPtr all_reduce_coalesced(const Tensors& tensors, const ReduceOp& op, const CallOptions& call);
  virtual WorkPtr reduce(const Tensor& tensor, int root, const ReduceOp& op, const CallOptions& call);

  /// outputs[r] becomes rank r's input; the sizes may differ from rank to rank.
  virtual WorkPtr all_gather(const Tensors& outputs, const Tensor& input, const CallOptions& call);
  virtual WorkPtr all_gather_single(const Tensor& output, const Tensor& input, const CallOptions& call);

  /// The root's outputs[r] becomes rank r's input; `outputs` is empty elsewhere.
  virtual WorkPtr gather(const Tensors& outputs, const Tensor& input, int root, const CallOptions& call);

  /// `output` becomes the root's inputs[own rank]; `inputs` is empty elsewhere.
  virtual WorkPtr scatter(const Tensor& output, const Tensors& inputs, int root, const CallOptions& call);

  /// `output` becomes the reduction of every rank's inputs[own rank].
  virtual WorkPtr reduce_scatter(const Tensor& output, const Tensors& inputs, const ReduceOp& op,
                                 const CallOptions& call);
  virtual WorkPtr reduce_scatter_single(const Tensor& output, const Tensor& input, const ReduceOp& op,
                                        const CallOptions& call);

  /// outputs[r] becomes rank r's inputs[own rank]; the sizes may differ from pair to pair.
  virtual WorkPtr all_to_all(const Tensors& outputs, const Tensors& inputs, const CallOptions& call);

  /// The same with rows of one tensor for each rank, as many as the splits say.
  virtual WorkPtr all_to_all_single(const Tensor& output, const Tensor& input,
                                    const std::vector<std::int64_t>& output_splits,
                                    const std::vector<std::int64_t>& input_splits, const CallOptions& call);
  virtual WorkPtr barrier(const CallOptions& call);

  /// A barrier that says who did not come; see distributed::monitored_barrier.
  virtual void monitored_barrier(std::chrono::milliseconds timeout, bool wait_all_ranks);

  virtual WorkPtr send(const Tensor& tensor, int destination, int tag, const CallOptions& call);
  virtual WorkPtr recv(const Tensor& tensor, int source, int tag, const CallOptions& call);
  virtual WorkPtr recv_any_source(const Tensor& tensor, int tag, const CallOptions& call);

  /// Ends every operation, now and later, with DistBackendError, and closes the connections. Waits for nobody.
  virtual void abort(const std::string& why);

  /// Lets what is queued finish for a few seconds, then aborts the rest. Waits for no peer beyond that.
  virtual void shutdown();

  /// The default limit of later operations.
  virtual void set_timeout(std::chrono::milliseconds timeout);

  /// A function that makes a backend: of everything that is known, or of (store, rank, size, timeout).
  class Creator {
   public:
    using Extended = std::function<MadeBackend(const BackendOptions&)>;

    Creator() = default;
    template <typename Function>
    requires std::is_invocable_v<Function, const BackendOptions&> Creator(
        Function function)  // NOLINT(google-explicit-constructor)
        : create_([function](const BackendOptions& options) { return MadeBackend(function(options)); }),
          is_extended_(true) {}
    template <typename Function>
    requires std::is_invocable_v < Function, const std::shared_ptr<Store>
    &, int, int,
        std::chrono::milliseconds > Creator(Function function)  // NOLINT(google-explicit-constructor)
        : create_([function](const BackendOptions& options) {
            return MadeBackend(function(options.store, options.rank, options.size, options.timeout));
          }) {}

    MadeBackend operator()(const BackendOptions& options) const { return create_(options); }
    bool is_extended() const noexcept { return is_extended_; }
    explicit operator bool() const noexcept { return create_ != nullptr; }

   private:
    Extended create_;
    bool is_extended_ = false;
  };

  /// Makes `name` usable in init_process_group and new_group for tensors of `devices` (none: the CPU). A second
  /// registration of a name replaces the first. May be called at any time, also from a static initialiser of a shared
  /// object. `extended_api` says which form the creator has, as in c10d; InvalidArgument when it has the other one.
  static void register_backend(const std::string& name, Creator creator, bool extended_api = false,
                               std::vector<DeviceType> devices = {}, std::uint32_t abi = kBackendAbiVersion);

  /// The same with everything that can be said in advance.
  static void register_backend(const std::string& name, Creator creator, BackendTraits traits,
                               std::uint32_t abi = kBackendAbiVersion);

 protected:
  /// The limit of one operation: the call's timeout, else the group's.
  std::chrono::milliseconds limit_of(const CallOptions& call) const noexcept;

 private:
  BackendOptions options_;
  std::atomic<std::chrono::milliseconds> timeout_;
};

/// Whether a backend of that name can be made in this build.
TP_API bool is_backend_available(std::string_view name);

/// The names of all backends there are, in order.
TP_API std::vector<std::string> available_backends();

/// What is known of a backend in advance; InvalidArgument that lists the names there are when there is none of that
/// name.
TP_API BackendTraits backend_traits(std::string_view name);

/// Loads a shared object that registers backends when it is loaded, and keeps it. InvalidArgument, with the loader's
/// text, when it cannot be loaded, registers nothing, or was built for another ABI version. What TP_BACKEND_PLUGINS
/// lists (paths, separated by colons) is loaded before the first backend is looked for.
TP_API void load_backend_plugin(const std::string& path);

/// Which backend can do what, as the documentation has it: one line for each call, one column for each backend.
TP_API std::string capability_table();

}  // namespace tensorplay::distributed
