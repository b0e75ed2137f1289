#include "tensorplay/distributed/future.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace tensorplay::distributed {

struct Future::State {
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  bool is_complete = false;
  Value value;
  std::exception_ptr error;
  std::vector<std::function<void(const Future&)>> callbacks;
};

Future::Future() : state_(std::make_unique<State>()) {}
Future::~Future() = default;

std::shared_ptr<Future> Future::completed(Value value) {
  auto future = std::make_shared<Future>();
  future->set_value(std::move(value));
  return future;
}

bool Future::is_completed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_complete;
}

bool Future::has_error() const {
  return error() != nullptr;
}

std::exception_ptr Future::error() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error;
}

Future::Value Future::wait() const {
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->is_complete; });
  }
  return value();
}

bool Future::wait_for(std::chrono::milliseconds timeout) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, timeout, [&] { return state_->is_complete; });
}

Future::Value Future::value() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_complete) throw InvalidArgument("the value of a future that is not complete; wait() for it first");
  if (state_->error) std::rethrow_exception(state_->error);
  return state_->value;
}

std::shared_ptr<Future> Future::then(std::function<Value(const Future&)> function) {
  auto next = std::make_shared<Future>();
  add_done_callback([next, function = std::move(function)](const Future& done) {
    try {
      next->set_value(function(done));
    } catch (...) {
      next->set_error(std::current_exception());
    }
  });
  return next;
}

void Future::add_done_callback(std::function<void(const Future&)> callback) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->is_complete) {
      state_->callbacks.push_back(std::move(callback));
      return;
    }
  }
  callback(*this);
}

void Future::set_value(Value value) {
  complete(std::move(value), nullptr);
}

void Future::set_error(std::exception_ptr error) {
  complete({}, std::move(error));
}

void Future::complete(Value value, std::exception_ptr error) {
  std::vector<std::function<void(const Future&)>> callbacks;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->is_complete) return;
    state_->is_complete = true;
    state_->value = std::move(value);
    state_->error = std::move(error);
    callbacks.swap(state_->callbacks);
    state_->changed.notify_all();
  }
  for (const auto& callback : callbacks) callback(*this);
}

}  // namespace tensorplay::distributed
