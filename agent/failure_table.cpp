#include "agent/failure_table.hpp"

#include "agent/terminal_text.hpp"
#include "rendezvous/failure_judgement.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

namespace tensorplay::agent {
namespace {

using rendezvous::WorkerFailure;

constexpr std::size_t kUnfoldedRows = 16;
constexpr std::size_t kFoldedRows = 10;

/// rank, node, local, pid, ended, after, and what there is to say beside: the log's path, or the error.
using Row = std::array<std::string, 7>;

std::string remark(const WorkerFailure& failure, bool is_root, int width) {
  if (failure.followed_from >= 0) return "followed from rank " + std::to_string(failure.followed_from);
  if (!failure.log_file.empty()) return failure.log_file;
  // The root cause's own words have the headline to themselves.
  if (is_root || failure.stopped_by_us || failure.message.empty()) return {};
  const std::string line = failure.message.substr(0, failure.message.find('\n'));
  return cut_to_columns(line, std::max(width - 60, 20));
}

Row row_of(const WorkerFailure& failure, bool is_root, int width) {
  return {std::to_string(failure.rank),
          failure.host,
          std::to_string(failure.local_rank),
          failure.pid > 0 ? std::to_string(failure.pid) : "-",
          end_in_brief(failure),
          failure.is_startup_failure ? "-" : duration_text(failure.runtime_seconds),
          remark(failure, is_root, width)};
}

/// Everything but the root cause, those alike in one row each.
std::vector<Row> folded_rows(const std::vector<WorkerFailure>& failures, int root_rank) {
  struct Group {
    std::vector<int> ranks;
    std::set<std::string> hosts;
    double longest = 0;
    std::string remark;
  };
  std::map<std::string, Group> groups;
  for (const WorkerFailure& failure : failures) {
    if (failure.rank == root_rank) continue;
    const bool has_words = failure.followed_from < 0 && !failure.stopped_by_us;
    const std::string words = has_words ? failure.message.substr(0, failure.message.find('\n')) : std::string();
    Group& group = groups[end_in_brief(failure) + "\n" + words];
    group.ranks.push_back(failure.rank);
    group.hosts.insert(failure.host);
    group.longest = std::max(group.longest, failure.runtime_seconds);
    if (failure.followed_from >= 0) {
      group.remark = "followed from rank " + std::to_string(failure.followed_from);
    } else if (!words.empty()) {
      group.remark = cut_to_columns(words, 60);
    }
  }
  std::vector<std::pair<std::string, Group>> sorted(groups.begin(), groups.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.ranks.size() > b.second.ranks.size(); });
  std::vector<Row> rows;
  std::size_t left = 0;
  for (const auto& [key, group] : sorted) {
    if (rows.size() == kFoldedRows) {
      left += group.ranks.size();
      continue;
    }
    const std::string count = std::to_string(group.ranks.size()) + (group.ranks.size() == 1 ? " rank" : " ranks");
    const std::string hosts =
        group.hosts.size() == 1 ? *group.hosts.begin() : std::to_string(group.hosts.size()) + " nodes";
    rows.push_back({rank_ranges(group.ranks), hosts, "", count, key.substr(0, key.find('\n')),
                    duration_text(group.longest), group.remark});
  }
  if (left > 0) rows.push_back({"...", "", "", std::to_string(left) + " ranks", "in other ways", "", ""});
  return rows;
}

}  // namespace

std::string duration_text(double seconds) {
  char text[64];
  if (!(seconds >= 0)) seconds = 0;
  if (seconds < 0.9995) {
    std::snprintf(text, sizeof text, "%.0f ms", seconds * 1000);
  } else if (seconds < 10) {
    std::snprintf(text, sizeof text, "%.2f s", seconds);
  } else if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (seconds < 3600) {
    const int whole = static_cast<int>(seconds);
    std::snprintf(text, sizeof text, "%d min %d s", whole / 60, whole % 60);
  } else if (seconds < 86400) {
    const int minutes = static_cast<int>(seconds / 60);
    std::snprintf(text, sizeof text, "%d h %d min", minutes / 60, minutes % 60);
  } else {
    const double hours = std::floor(seconds / 3600);
    std::snprintf(text, sizeof text, "%.0f d %.0f h", std::floor(hours / 24), std::fmod(hours, 24));
  }
  return text;
}

std::string rank_ranges(std::vector<int> ranks, std::size_t most) {
  std::sort(ranks.begin(), ranks.end());
  std::string text;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < ranks.size(); ++ranges) {
    std::size_t end = i;
    while (end + 1 < ranks.size() && ranks[end + 1] <= ranks[end] + 1) ++end;
    if (ranges == most) return text + ",...";
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[i]);
    if (end > i) text += '-' + std::to_string(ranks[end]);
    i = end + 1;
  }
  return text;
}

std::string render_failure_table(const rendezvous::FinishOrder& finish, const TableStyle& style) {
  std::vector<Row> rows{{"rank", "node", "local", "pid", "ended", "after", ""}};
  const WorkerFailure& root = *finish.root_cause;
  const int width = style.report.width;
  rows.push_back(row_of(root, true, width));
  if (finish.failures.size() > kUnfoldedRows || finish.more_failures > 0) {
    for (Row& row : folded_rows(finish.failures, root.rank)) rows.push_back(std::move(row));
  } else {
    for (const WorkerFailure& failure : finish.failures) {
      if (failure.rank != root.rank) rows.push_back(row_of(failure, false, width));
    }
  }
  if (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row[6].empty(); })) rows[0][6] = "log";

  std::array<std::size_t, 7> widths{};
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], static_cast<std::size_t>(columns_of(row[column])));
    }
  }
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string line;
    for (std::size_t column = 0; column < rows[i].size(); ++column) {
      if (column == 1 && !style.with_node) continue;
      const std::string& cell = rows[i][column];
      const std::string padding(widths[column] - static_cast<std::size_t>(columns_of(cell)), ' ');
      // Numbers to the right, words to the left.
      const bool is_number = column == 0 || column == 2 || column == 5;
      line += "  " + (is_number ? padding + cell : cell + padding);
    }
    while (line.ends_with(' ')) line.pop_back();
    if (style.report.colour && i == 1) line = "\x1b[1m" + line + "\x1b[0m";
    if (style.report.colour && i == 0) line = "\x1b[2m" + line + "\x1b[0m";
    out += "  " + line + "\n";
  }
  if (finish.more_failures > 0) {
    out += "    ... and " + std::to_string(finish.more_failures) + " more ranks\n";
  }
  return out;
}

}  // namespace tensorplay::agent
