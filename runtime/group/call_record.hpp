/// Who sees the operations of all groups: a seam for the profiler, which stands above this folder.
///
/// While a sink is set, every operation of every backend is told to it twice, when the call returns and when the
/// operation is complete, and every wait once. Without one an operation costs one atomic load more.
/// Thread rules: set and cleared from any thread. A sink is called from any thread, and lives for ever: operations may
/// end long after it was cleared.
#pragma once

#include "tensorplay/distributed/dtype.hpp"
#include "tensorplay/distributed/op_type.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::distributed {

struct CallRecord {
  using Clock = std::chrono::steady_clock;

  OpType type = OpType::BARRIER;
  std::string backend = {};
  std::string group_name = {};
  std::string group_desc = {};
  std::vector<int> group_ranks = {};
  int rank = 0;  ///< In the group.
  std::optional<DType> dtype = {};
  std::int64_t in_elements = 0;
  std::int64_t out_elements = 0;
  std::vector<std::int64_t> in_splits = {};
  std::vector<std::int64_t> out_splits = {};
  int peer = -1;  ///< Root, destination or source, as a rank of the group.
  std::uint64_t sequence = 0;
  bool is_async = false;
  Clock::time_point begin = {};
  Clock::time_point end = {};
  std::exception_ptr error = {};
};

class CallSink {
 public:
  virtual ~CallSink() = default;
  virtual void call_returned(const CallRecord& record) noexcept = 0;
  virtual void operation_ended(const CallRecord& record) noexcept = 0;
  virtual void waited(std::string_view name, std::uint64_t sequence, CallRecord::Clock::time_point begin,
                      CallRecord::Clock::time_point end) noexcept = 0;
};

/// Null while nobody looks.
extern std::atomic<CallSink*> g_call_sink;

}  // namespace tensorplay::distributed
