/// What goes through the pipes between a tprun and those it starts on other hosts. Downward: one line of JSON, the
/// assignment, then "signal 15\n" each time; the end of it all is the pipe's end. Upward: frames behind a greeting,
/// since a login shell may say things of its own first. Cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::agent {

/// What a relay has to do: run one tprun for its own host, and start relays on the others of its branch.
struct Assignment {
  std::vector<std::size_t> members;        ///< Indexes of hosts: its own first.
  std::vector<std::string> names;          ///< Of the members, in the same order.
  std::vector<std::string> member_values;  ///< --host-member of each member.
  std::string program;                     ///< tprun itself.
  std::vector<std::string> words;          ///< tprun's command line.
  std::vector<std::string> environment;    ///< "NAME=value", over what the host has by itself.
  std::string folder;                      ///< The working folder.
  std::string ssh;                         ///< --ssh-command.
};

/// One line with its newline; parse throws std::runtime_error.
std::string format_assignment(const Assignment& assignment);
Assignment parse_assignment(std::string_view line);

/// The assignment of one branch: the members at `positions` of it.
Assignment part_of(const Assignment& whole, const std::vector<std::size_t>& positions);

enum class FrameKind : char {
  kOut = 'o',   ///< Whole lines of standard output.
  kErr = 'e',   ///< The same of standard error.
  kEnd = 'x',   ///< "INDEX CODE": the tprun of that host has ended with that exit code.
  kLost = 'l',  ///< "INDEX why": that host cannot be reached, or not any more.
};

struct Frame {
  FrameKind kind = FrameKind::kOut;
  std::string text;
};

/// Index and what stands behind it, of kEnd and kLost.
std::pair<std::size_t, std::string> parse_member_news(const std::string& text);

std::string greeting_of_relay();
std::string format_frame(FrameKind kind, std::string_view text);

/// Takes what came in, in pieces of any size.
class FrameReader {
 public:
  void feed(std::string_view bytes) { bytes_ += bytes; }

  /// The next whole frame. Throws std::runtime_error for what no relay sends.
  std::optional<Frame> take();

  /// Whether the greeting has been seen; what came before it is dropped.
  bool has_greeted() const { return has_greeted_; }

 private:
  std::string bytes_;
  bool has_greeted_ = false;
};

/// Makes whole lines of pieces: what two hosts print must not meet within a line.
class LineJoiner {
 public:
  /// The whole lines that `bytes` complete; a line of 64 KiB and more goes on in pieces.
  std::string feed(std::string_view bytes);

  /// What is left, with a newline; empty when nothing is.
  std::string finish();

 private:
  std::string rest_;
};

}  // namespace tensorplay::agent
