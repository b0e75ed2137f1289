/// The last lines of a stream, for the failure report: a few kilobytes of its end, and nothing else kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::agent {

/// The last `count` lines of `text`, oldest first, made fit to be quoted: a progress bar is its last refresh, escape
/// sequences and control characters are gone, broken UTF-8 is '?', very long lines are cut. A Python traceback longer
/// than `count` keeps its head line and its end. `is_cut`: the text's first line may be the end of a longer one.
std::vector<std::string> quotable_lines(std::string_view text, std::size_t count, bool is_cut);

/// Thread rules: none; one owner.
class StderrTail {
 public:
  static constexpr std::size_t kKept = std::size_t{16} << 10;

  void add(std::string_view bytes);
  std::vector<std::string> lines(std::size_t count) const;

  /// What had been shown on tprun's stderr, in bytes of all workers, when the last of these was; empty when these are
  /// not shown there.
  std::optional<std::uint64_t> shown_until;

 private:
  std::string kept_;
  bool is_cut_ = false;
};

/// The same from the end of a file; empty when it cannot be read.
std::vector<std::string> last_lines_of_file(const std::string& path, std::size_t count);

}  // namespace tensorplay::agent
