/// The table in the failure report: the root cause first, then everybody else that did not end well; those that ended
/// alike are folded into one row when there are many.
#pragma once

#include "agent/failure_report.hpp"

#include <string>
#include <vector>

namespace tensorplay::agent {

struct TableStyle {
  ReportStyle report;
  bool with_node = true;  ///< A column for the host.
};

/// Rows indented by two, each ending with a newline.
std::string render_failure_table(const rendezvous::FinishOrder& finish, const TableStyle& style);

/// "120 ms", "12.3 s", "4 min 10 s", "3 h 20 min", "2 d 5 h".
std::string duration_text(double seconds);

/// Ranks in the shortest form: "0-3,5,7-9"; cut with "..." behind `most` ranges.
std::string rank_ranges(std::vector<int> ranks, std::size_t most = 4);

}  // namespace tensorplay::agent
