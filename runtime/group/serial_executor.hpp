#pragma once

#include "tensorplay/distributed/work.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace tensorplay::distributed {

/// Runs the operations of one group one after the other, in the order in which they were asked for.
///
/// Each operation draws a ticket. A synchronous one waits for its turn and runs in the caller's thread, so without
/// anything before it nothing is handed over and nobody is woken; an asynchronous one runs in a thread that is started
/// when first needed. The order, and with it every result, is the same either way.
/// A callback on a Work runs before the next operation's turn, so it may submit operations but not wait for them:
/// InvalidArgument.
/// Thread rules: every method may be called from any thread.
class SerialExecutor {
 public:
  /// What an operation does: fills the Work's tensors and returns them, or throws.
  using Operation = std::function<std::vector<Tensor>(std::uint64_t sequence)>;

  SerialExecutor() = default;
  ~SerialExecutor();  ///< Stops as `stop` does, if nobody has.
  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  /// Runs, or queues, an operation. A synchronous one throws what it failed with and returns a complete Work.
  std::shared_ptr<Work> submit(std::string name, bool async_op, Operation operation);

  /// Waits until everything that was asked for has run, or `limit` is over; whether it has.
  bool drain(std::chrono::milliseconds limit);

  /// From now on operations fail with `why` instead of running, the queued ones too. Joins the thread, so the running
  /// operation has to be ended by other means.
  void stop(std::exception_ptr why);

 private:
  struct Queued {
    std::uint64_t ticket;
    std::shared_ptr<Work> work;
    Operation operation;
  };

  void run_queue();
  void take_turn(std::uint64_t ticket);
  void end_turn();
  void carry_out(Work& work, const Operation& operation, std::uint64_t ticket);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t now_serving_ = 0;
  std::deque<Queued> queue_;
  std::exception_ptr stopped_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace tensorplay::distributed
