/// Bytes of one worker's stream in, whole prefixed lines out. However the bytes are cut, the lines are the same: no
/// clock, no descriptors.
///
/// A carriage return starts the line anew, as it does on a terminal: of a progress bar's refreshes the last one becomes
/// the line, and `unfinished()` shows the present one to whoever wants to look in between. Bytes that are no text
/// (control characters, broken UTF-8) are left as they are, carriage returns included. Thread rules: none; one owner.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace tensorplay::agent {

/// What the macros of a prefix template stand for.
struct PrefixValues {
  std::string role_name;
  int rank = 0;
  int local_rank = 0;
  std::string hostname;  ///< Short host name.
};

/// Replaces ${role_name}, ${rank}, ${local_rank} and ${hostname} (braces may be left out; `$$` is a dollar). Anything
/// else after a dollar is left alone. An empty template stands for "[${role_name}${local_rank}]:".
std::string expand_prefix(std::string_view prefix_template, const PrefixValues& values);

class LineAssembly {
 public:
  /// A line longer than this is broken into several, each with the prefix: memory is bounded whatever a worker writes.
  static constexpr std::size_t kLongestLine = std::size_t{4} << 20;

  explicit LineAssembly(std::string prefix, std::size_t longest_line = kLongestLine)
      : prefix_(std::move(prefix)), longest_(longest_line) {}

  /// Takes `bytes`; appends every line they complete to `lines`, each with the prefix and ending with a newline.
  void feed(std::string_view bytes, std::string& lines);

  /// The stream is at its end: what is left is a line too.
  void finish(std::string& lines);

  /// What a terminal would show of the line that has not ended: its newest refresh, without the prefix. Empty when
  /// there is nothing, or nothing but blanks.
  std::string_view unfinished() const;

  /// How often a carriage return has begun a line anew; changes when `unfinished()` is a newer refresh.
  std::size_t refreshes() const noexcept { return refreshes_; }

  const std::string& prefix() const noexcept { return prefix_; }

 private:
  void take_bounded(std::string_view text, std::string& lines);
  void feed_with_returns(std::string_view bytes, std::string& lines);
  void begin_anew(std::string& lines);
  void end_line(std::string& lines);

  std::string prefix_;
  std::size_t longest_;
  std::string line_;     ///< Since the last newline, or the last refresh.
  std::string refresh_;  ///< The newest refresh that a carriage return has ended.
  std::size_t refreshes_ = 0;
  bool return_held_ = false;  ///< The last byte was a carriage return; the next one says what it meant.
  bool is_binary_ = false;    ///< This line is no text.
};

}  // namespace tensorplay::agent
