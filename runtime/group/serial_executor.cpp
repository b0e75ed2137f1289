#include "runtime/group/serial_executor.hpp"

#include "runtime/group/close_hook.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <utility>

namespace tensorplay::distributed {
namespace {

/// The executor whose operation, or whose callback, this thread is in.
thread_local const SerialExecutor* t_running = nullptr;

}  // namespace

SerialExecutor::~SerialExecutor() {
  stop(std::make_exception_ptr(DistBackendError("the group was destroyed before the operation ran")));
}

std::shared_ptr<Work> SerialExecutor::submit(std::string name, bool async_op, Operation operation) {
  if (!async_op && t_running == this) {
    throw InvalidArgument(name + ": a callback may start operations of its own group but not wait for one");
  }
  std::unique_lock lock(mutex_);
  const auto ticket = next_ticket_++;
  auto work = std::make_shared<Work>(std::move(name), ticket);
  if (async_op) {
    queue_.push_back({ticket, work, std::move(operation)});
    if (!thread_.joinable() && !is_ending_) thread_ = std::thread([this] { run_queue(); });
    const bool nobody_runs_it = is_ending_;
    changed_.notify_all();
    if (nobody_runs_it) {
      Queued mine = std::move(queue_.back());
      queue_.pop_back();
      lock.unlock();
      carry_out(*work, mine.operation, ticket);
    }
    return work;
  }
  lock.unlock();
  carry_out(*work, operation, ticket);
  if (const auto error = work->exception()) rethrow(error);
  return work;
}

void SerialExecutor::carry_out(Work& work, const Operation& operation, std::uint64_t ticket) {
  take_turn(ticket);
  const auto* const outer = std::exchange(t_running, this);
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = stopped_;
  }
  std::vector<Tensor> result;
  if (!error) {
    try {
      result = operation(ticket);
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error) {
    work.fail(error);
  } else {
    work.finish(std::move(result));
  }
  t_running = outer;
  end_turn();  // After the callbacks: operations complete in order.
}

void SerialExecutor::take_turn(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return now_serving_ == ticket; });
}

void SerialExecutor::end_turn() {
  const std::lock_guard lock(mutex_);
  ++now_serving_;
  changed_.notify_all();
}

void SerialExecutor::run_queue() {
  while (true) {
    Queued next;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty() || is_ending_; });
      if (queue_.empty()) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    carry_out(*next.work, next.operation, next.ticket);
  }
}

bool SerialExecutor::drain(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const auto last = next_ticket_;
  return changed_.wait_for(lock, limit, [&] { return now_serving_ >= last; });
}

void SerialExecutor::stop(std::exception_ptr why) {
  std::thread ended;
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_) stopped_ = std::move(why);
    is_ending_ = true;
    ended.swap(thread_);
    changed_.notify_all();
  }
  if (ended.joinable()) ended.join();
}

}  // namespace tensorplay::distributed
