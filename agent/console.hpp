/// tprun's stdout and stderr, shared by the agent's own words and by the workers' lines, so that neither ever lands in
/// the middle of the other. Writing happens on threads with bounded queues (none before the first byte): a console that
/// does not take its bytes holds up whoever waits for it to drain, never the loop.
#pragma once

#include "agent/output_writer.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tensorplay::agent {

/// How much the agent says of itself; LOGLEVEL chooses (torchrun's names), and warnings are what is shown by default.
enum class Chatter { kDebug, kInfo, kWarning, kError };

/// The level LOGLEVEL names, in any case of letters or as Python's number; nullopt when it is not one.
std::optional<Chatter> parse_chatter(std::string_view text);

/// Thread rules: loop thread only. Outlives every WorkerOutput that uses it.
class Console {
 public:
  /// Speaks on the given descriptors, which stay the caller's and are never set non-blocking.
  explicit Console(int stdout_fd = 1, int stderr_fd = 2);
  ~Console();  ///< flush(2 s), and takes down the status line.
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// One line on stderr, "tprun: " put before it. Always shown.
  void say(std::string_view line);

  /// The same for chatter: shown when LOGLEVEL asks for this level.
  void say(Chatter level, std::string_view line);

  /// Text of whole lines on stderr, as it is: the failure report.
  void print(std::string_view text);

  /// Where things stand ("job7: 3 of 4 nodes are here, waiting for n3"), "tprun: " put before it. On a terminal one
  /// line that is rewritten in place with the seconds appended by the caller; elsewhere a line each time `what`
  /// changes, so that a log does not fill with clocks. `clock` is the part that changes all the time: "(12 s of 600
  /// s)".
  void status(std::string_view what, std::string_view clock = {});
  void clear_status();

  /// Takes finished lines of the logging seam (base::log::Options::sink), from any thread, while this object lives.
  std::function<void(std::string_view line)> line_taker();

  /// Waits until everything said so far is written. Gives up, and returns false, when not one byte has gone out for
  /// `patience`: a reader that is slow gets everything, one that has stopped reading holds nobody up.
  bool flush(std::chrono::milliseconds patience);

  bool stderr_is_terminal() const;  ///< One whose lines can be rewritten: TERM is set, and not dumb.
  bool wants_colour() const;        ///< Such a terminal, and NO_COLOR is not set.
  int width() const;                ///< Columns of the terminal; 100 where there is none.

  /// Grows while bytes go out: tells a slow console from a stuck one.
  std::uint64_t bytes_done() const;

  /// Where the workers' lines go. Both have one writer and one target where stdout and stderr are the same place.
  Sink& out();
  Sink& err();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorplay::agent
