#include "runtime/profiler/recording.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include <sys/syscall.h>

namespace tensorplay::profiler {

void profile::Recording::add(Event event) {
  const std::int64_t offset = nanoseconds(start);
  event.start_ns -= offset;
  event.end_ns -= offset;
  if (event.start_ns < 0) return;  // Begun before anybody looked.
  const std::lock_guard lock(mutex);
  if (events.size() >= most) {
    ++dropped;
  } else {
    events.push_back(std::move(event));
  }
}

std::vector<Event> profile::Recording::sorted() const {
  std::vector<Event> copy;
  {
    const std::lock_guard lock(mutex);
    copy = events;
  }
  std::stable_sort(copy.begin(), copy.end(), [](const Event& a, const Event& b) { return a.start_ns < b.start_ns; });
  return copy;
}

OperationNames names_of(distributed::OpType type, bool has_splits) noexcept {
  using distributed::OpType;
  switch (type) {
    case OpType::BROADCAST:
      return {"broadcast", "broadcast"};
    case OpType::ALLREDUCE:
      return {"all_reduce", "allreduce"};
    case OpType::ALLREDUCE_COALESCED:
      return {"all_reduce", "allreduce_coalesced"};
    case OpType::REDUCE:
      return {"reduce", "reduce"};
    case OpType::ALLGATHER:
      return {"all_gather", "allgather"};
    case OpType::ALLGATHER_SINGLE:
      return {"_all_gather_base", "_allgather_base"};
    case OpType::GATHER:
      return {"gather", "gather"};
    case OpType::SCATTER:
      return {"scatter", "scatter"};
    case OpType::REDUCE_SCATTER:
      return {"reduce_scatter", "reduce_scatter"};
    case OpType::REDUCE_SCATTER_SINGLE:
      return {"_reduce_scatter_base", "_reduce_scatter_base"};
    case OpType::ALLTOALL:
      return {"all_to_all", "all_to_all"};
    case OpType::ALLTOALL_SINGLE:
      return {"all_to_all", has_splits ? "all_to_allv" : "all_to_all"};
    case OpType::SEND:
      return {"send", "send"};
    case OpType::RECV:
      return {"recv", "recv"};
    case OpType::RECVANYSOURCE:
      return {"recvAnySource", "recv"};
    case OpType::BARRIER:
      return {"barrier", "barrier"};
    case OpType::MONITORED_BARRIER:
      return {"monitored_barrier", "monitored_barrier"};
  }
  return {"unknown", "unknown"};
}

std::int64_t nanoseconds(distributed::CallRecord::Clock::time_point when) noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
}

std::uint64_t current_thread() {
  static thread_local const auto id = static_cast<std::uint64_t>(::syscall(SYS_gettid));
  return id;
}

}  // namespace tensorplay::profiler
