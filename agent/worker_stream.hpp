/// One pipe from one worker: read on the loop in large pieces, handed on to the file, the console, the filtered file
/// and the tail that want it. Stops reading while too much of it waits to be written.
#pragma once

#include "agent/line_assembly.hpp"
#include "agent/output_writer.hpp"
#include "agent/stderr_tail.hpp"
#include "runtime/base/fd.hpp"

#include <asio/posix/stream_descriptor.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::agent {

/// Where one stream goes; what is absent is not wanted.
struct StreamRoutes {
  std::optional<Sink> file;  ///< Every byte as it came.
  std::optional<Sink> console;
  std::optional<std::string> prefix;  ///< Whole lines with this in front; absent: bytes as they came.
  std::optional<Sink> filtered;       ///< Prefixed lines that hold one of `filters`.
  std::vector<std::string> filters;
  std::shared_ptr<StderrTail> tail;
  int owner = 0;          ///< TerminalScreen's number of this stream.
  bool is_alone = false;  ///< No other worker writes there: unfinished lines need not be held.
};

/// What the streams of a run share.
struct StreamShared {
  asio::io_context& loop;
  std::vector<char> buffer;                     ///< Read into by one stream at a time.
  std::size_t quota = 0;                        ///< Bytes of one stream that may wait to be written.
  std::function<void()> want_tick;              ///< Somebody waits for the next tick.
  std::function<void()> on_end;                 ///< A stream has come to its end.
  std::shared_ptr<OutputTarget> stderr_target;  ///< tprun's own stderr.
  std::uint64_t shown_on_stderr = 0;            ///< Bytes that all streams have sent there.
};

/// Thread rules: loop thread only; owned by shared_ptr, as handlers hold on to it.
class WorkerStream : public std::enable_shared_from_this<WorkerStream> {
 public:
  using Clock = std::chrono::steady_clock;

  WorkerStream(StreamShared& shared, base::UniqueFd read_end, StreamRoutes routes);

  void start();

  /// Called about every millisecond while `wants_tick()`: reads what has come in meanwhile. Reading by the clock while
  /// a worker writes line after line costs one wake-up for many lines instead of one for each.
  void tick(Clock::time_point now);
  bool wants_tick() const { return state_ == State::kTicking; }

  bool has_ended() const { return state_ == State::kEnded; }

  /// Nothing more is waited for: what is in the pipe now is taken in whatever the quota says (a slow console may be why
  /// it is still there), then the pipe is closed.
  void give_up();

 private:
  enum class State { kWaiting, kTicking, kPaused, kEnded };

  void wait_readable();
  void read_some(Clock::time_point now);
  void take(std::string_view bytes, Clock::time_point now);
  void take_lines(std::string_view bytes, Clock::time_point now);
  void take_as_it_comes(std::string_view bytes);
  void write_lines(std::string lines);
  void show_unfinished(Clock::time_point now);
  void end();

  StreamShared& shared_;
  asio::posix::stream_descriptor pipe_;
  StreamRoutes routes_;
  std::shared_ptr<Quota> quota_;
  std::optional<LineAssembly> assembly_;
  State state_ = State::kWaiting;
  std::string held_;  ///< End of an unfinished line that is not to be mixed with others'.
  std::size_t shown_refreshes_ = 0;
  std::string shown_unfinished_;
  Clock::time_point last_data_{};
  Clock::time_point last_shown_{};  ///< Of a line or a refresh on the console.
};

}  // namespace tensorplay::agent
