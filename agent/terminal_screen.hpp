/// What the bottom line of a terminal shows while workers write: finished lines scroll up, and below them stands one
/// line that is rewritten in place, a progress bar or tprun's own status. Events in, bytes out; no descriptors, no
/// clock.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tensorplay::agent {

/// Thread rules: none; one owner.
class TerminalScreen {
 public:
  /// Who may have a line in place: a worker's stream has a number of its own from 0 up; tprun's status comes last.
  static constexpr int kStatus = 1 << 30;
  static constexpr int kNobody = -1;  ///< For lines that end nothing: messages.

  void set_width(int columns) { width_ = columns; }

  /// Whole lines of `owner`; whatever it had in place is over.
  void lines(int owner, std::string_view text, std::string& out);

  /// Bytes that may stop anywhere: from here on the cursor is where they left it.
  void raw(std::string_view text, std::string& out);

  /// `owner`'s line in place is now `text`; empty takes it away. The lowest owner's is the one shown, with the number
  /// of the others behind it.
  void in_place(int owner, std::string_view text, std::string& out);

 private:
  void wipe(std::string& out);
  void draw(std::string& out);

  int width_ = 80;
  bool is_drawn_ = false;
  std::map<int, std::string> in_place_;
};

}  // namespace tensorplay::agent
