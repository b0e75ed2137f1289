#pragma once

#include "runtime/group/call_record.hpp"
#include "tensorplay/profiler.hpp"

#include <cstddef>
#include <mutex>
#include <vector>

namespace tensorplay::profiler {

/// What one profile has seen. Thread rules: every method may be called from any thread.
struct profile::Recording {
  using Clock = distributed::CallRecord::Clock;

  explicit Recording(std::size_t most_events) : most(most_events), start(Clock::now()) {}

  /// Times are still the clock's own.
  void add(Event event);
  std::vector<Event> sorted() const;

  const std::size_t most;
  const Clock::time_point start;
  mutable std::mutex mutex;
  std::vector<Event> events;
  std::size_t dropped = 0;
};

/// "all_reduce" and "allreduce": the operation's name behind the backend's, and the collective's in a call's record.
struct OperationNames {
  const char* operation;
  const char* collective;
};
OperationNames names_of(distributed::OpType type, bool has_splits) noexcept;

std::int64_t nanoseconds(distributed::CallRecord::Clock::time_point when) noexcept;

/// This thread, as the kernel numbers it.
std::uint64_t current_thread();

}  // namespace tensorplay::profiler
