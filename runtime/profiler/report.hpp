/// Events made readable: sums, a table, a trace.
///
/// Thread rules: pure but for the file.
#pragma once

#include "tensorplay/profiler.hpp"

#include <string>
#include <vector>

namespace tensorplay::profiler {

std::vector<EventAverage> average(const std::vector<Event>& events);
std::string make_table(const std::vector<EventAverage>& averages);

/// The trace's text; `pid` and `rank` (-1: unknown) name its process.
std::string chrome_trace(const std::vector<Event>& events, int pid, int rank);
void write_chrome_trace(const std::string& path, const std::vector<Event>& events);

}  // namespace tensorplay::profiler
