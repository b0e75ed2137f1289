#include "agent/near_miss.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace tensorplay::agent {
namespace {

std::string folded(std::string_view word) {
  std::string out(word);
  for (char& letter : out) {
    letter = letter == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return out;
}

/// Edits that turn `a` into `b`: insertion, deletion, substitution, swap of neighbours (optimal string alignment).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string_view> near_miss(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string wanted = folded(word);
  if (wanted.empty() || wanted.size() > 64) return std::nullopt;
  const std::size_t limit = wanted.size() <= 4 ? 1 : wanted.size() <= 8 ? 2 : 3;
  std::optional<std::string_view> best;
  std::size_t best_distance = limit + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, folded(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (best) return best;
  // Words left out or added whole: --nproc for --nproc-per-node, --log-directory for --log-dir.
  for (const std::string_view candidate : candidates) {
    const std::string other = folded(candidate);
    const auto& [shorter, longer] = wanted.size() < other.size() ? std::pair(wanted, other) : std::pair(other, wanted);
    if (shorter.size() >= 4 && longer.find(shorter) != std::string::npos) return candidate;
  }
  return std::nullopt;
}

}  // namespace tensorplay::agent
