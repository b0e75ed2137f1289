/// What the communication of this process costs.
///
///     tensorplay::profiler::profile profile;             // records from here
///     dist::all_reduce(tensor);
///     profile.stop();
///     std::cout << profile.table();
///     profile.export_chrome_trace("trace.json");         // chrome://tracing, https://ui.perfetto.dev
///
/// Every collective, send, receive and wait of every backend and group is recorded, under torch's names:
/// "gloo:all_reduce" for the operation itself, "record_param_comms" for the call that started it (in the thread that
/// made it), "wait". While nothing is recorded an operation costs one atomic load more.
/// Source: torch.profiler and torch.autograd.profiler.
#pragma once

#include "tensorplay/distributed/export.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::profiler {

/// One thing that took time.
struct Event {
  enum class Kind : std::uint8_t { kCall, kOperation, kWait, kUser };

  Kind kind = Kind::kOperation;
  std::string name = {};             ///< "gloo:all_reduce", "record_param_comms", "wait", a record_function's.
  std::string collective_name = {};  ///< "allreduce", "_allgather_base"; of a wait: the operation's.
  std::string group_name = {};
  std::string group_desc = {};
  std::vector<int> group_ranks = {};  ///< Global ranks of the members.
  std::string dtype = {};
  std::int64_t in_elements = 0;
  std::int64_t out_elements = 0;
  std::vector<std::int64_t> in_split_sizes = {};
  std::vector<std::int64_t> out_split_sizes = {};
  std::int64_t bytes = 0;  ///< Of the larger side.
  int peer = -1;           ///< Root, destination or source: a rank of the group.
  std::uint64_t sequence = 0;
  bool is_async = false;
  std::int64_t start_ns = 0;  ///< Since the recording began.
  std::int64_t end_ns = 0;
  std::uint64_t thread = 0;
  std::string error = {};  ///< What it failed with.
};

/// All events of one name and group size, summed up.
struct EventAverage {
  std::string key = {};
  std::int64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t least_ns = 0;
  std::int64_t most_ns = 0;
  std::int64_t bytes = 0;
  double mean_ns() const { return count == 0 ? 0 : static_cast<double>(total_ns) / static_cast<double>(count); }
};

struct ProfileOptions {
  std::size_t most_events = 1'000'000;  ///< Later ones are counted and dropped.
};

/// Records from its construction to stop(), or its end. Several at once each see everything.
///
/// An operation that is still running at stop() is left out. Thread rules: made and read by one thread; what it records
/// may happen in any.
class TP_API profile {
 public:
  explicit profile(const ProfileOptions& options = {});
  ~profile();
  profile(const profile&) = delete;
  profile& operator=(const profile&) = delete;

  void stop();

  std::vector<Event> events() const;  ///< In the order of their starts.
  std::size_t dropped_events() const;

  /// By name, the most expensive first.
  std::vector<EventAverage> key_averages() const;
  std::string table() const;

  /// The Chrome trace format: calls, waits and user scopes by thread, operations by group. Throws std::runtime_error
  /// with path and reason.
  void export_chrome_trace(const std::string& path) const;

  struct Recording;

 private:
  std::shared_ptr<Recording> recording_;
};

/// A scope of the user's own in the same picture: record_function scope("forward");
class TP_API record_function {
 public:
  explicit record_function(std::string_view name);
  ~record_function();
  record_function(const record_function&) = delete;
  record_function& operator=(const record_function&) = delete;

 private:
  std::string name_;
  std::int64_t begin_ = -1;  // -1: nobody recorded at the start.
};

}  // namespace tensorplay::profiler

namespace tensorplay::autograd::profiler {

/// The older name.
using tensorplay::profiler::profile;
using tensorplay::profiler::record_function;

}  // namespace tensorplay::autograd::profiler
