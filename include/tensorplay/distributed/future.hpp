#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

namespace tensorplay::distributed {

/// A value that an operation will have: the tensors it filled.
///
/// Callbacks run once, in the order they were added: in the thread that completes the future, or at once in the
/// caller's when it is complete already. An exception in a `then` becomes the new future's; a done callback may not
/// throw.
/// Thread rules: every method may be called from any thread. Held by shared_ptr.
class TP_API Future : public std::enable_shared_from_this<Future> {
 public:
  using Value = std::vector<Tensor>;

  Future();
  ~Future();
  Future(const Future&) = delete;
  Future& operator=(const Future&) = delete;

  /// A future that is complete already.
  static std::shared_ptr<Future> completed(Value value);

  bool is_completed() const;
  bool has_error() const;            ///< False while it is not complete.
  std::exception_ptr error() const;  ///< Null while it is not complete, or when it has a value.

  /// Blocks until it is complete; the value, or the error thrown.
  Value wait() const;

  /// Blocks until it is complete or `timeout` is over; whether it is complete. Throws nothing.
  bool wait_for(std::chrono::milliseconds timeout) const;

  /// The value of a complete future, or its error thrown. InvalidArgument while it is not complete.
  Value value() const;

  /// A future of what `function` makes of this one.
  std::shared_ptr<Future> then(std::function<Value(const Future&)> function);

  void add_done_callback(std::function<void(const Future&)> callback);

  // For whoever fulfils it; the first call wins, later ones are ignored.
  void set_value(Value value);
  void set_error(std::exception_ptr error);

 private:
  struct State;
  void complete(Value value, std::exception_ptr error);
  std::unique_ptr<State> state_;
};

}  // namespace tensorplay::distributed
