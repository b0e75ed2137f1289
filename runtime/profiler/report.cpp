#include "runtime/profiler/report.hpp"

#include "runtime/base/environment.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <stdexcept>
#include <unistd.h>

namespace tensorplay::profiler {
namespace {

using nlohmann::json;

/// As torch cuts it.
constexpr std::size_t kMostSplits = 30;

/// Operations of a group run beside the threads, on a line of their own.
constexpr std::uint64_t kGroupTracks = 1'000'000'000;

json splits(const std::vector<std::int64_t>& sizes) {
  return json(std::vector<std::int64_t>(
      sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(std::min(sizes.size(), kMostSplits))));
}

json arguments(const Event& event) {
  json args = json::object();
  if (event.kind == Event::Kind::kUser) return args;
  args["Collective name"] = event.collective_name;
  args["Seq"] = event.sequence;
  if (event.kind != Event::Kind::kWait) {
    args["dtype"] = event.dtype;
    args["In msg nelems"] = event.in_elements;
    args["Out msg nelems"] = event.out_elements;
    args["Group size"] = event.group_ranks.size();
    args["Process Group Name"] = event.group_name;
    args["Process Group Description"] = event.group_desc;
    args["Process Group Ranks"] = event.group_ranks;
    args["In split size"] = splits(event.in_split_sizes);
    args["Out split size"] = splits(event.out_split_sizes);
    args["Bytes"] = event.bytes;
    args["Async"] = event.is_async;
    if (event.peer >= 0) args["Peer"] = event.peer;
  }
  if (!event.error.empty()) args["Error"] = event.error;
  return args;
}

std::string time_text(double nanoseconds) {
  char text[32];
  if (nanoseconds < 1e6) {
    std::snprintf(text, sizeof text, "%.3fus", nanoseconds / 1e3);
  } else {
    std::snprintf(text, sizeof text, "%.3fms", nanoseconds / 1e6);
  }
  return text;
}

}  // namespace

std::vector<EventAverage> average(const std::vector<Event>& events) {
  std::map<std::string, EventAverage> by_name;
  for (const Event& event : events) {
    EventAverage& sum = by_name[event.name];
    const auto time = event.end_ns - event.start_ns;
    sum.key = event.name;
    sum.least_ns = sum.count == 0 ? time : std::min(sum.least_ns, time);
    sum.most_ns = std::max(sum.most_ns, time);
    sum.total_ns += time;
    sum.bytes += event.bytes;
    ++sum.count;
  }
  std::vector<EventAverage> result;
  for (auto& [name, sum] : by_name) result.push_back(std::move(sum));
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
  return result;
}

std::string make_table(const std::vector<EventAverage>& averages) {
  std::size_t width = 4;
  for (const auto& one : averages) width = std::max(width, one.key.size());
  char line[512];
  const auto row = [&](const char* name, const std::string& calls, const std::string& total, const std::string& mean,
                       const std::string& least, const std::string& most, const std::string& bytes) {
    std::snprintf(line, sizeof line, "%-*.200s  %10s  %12s  %12s  %12s  %12s  %14s\n", static_cast<int>(width), name,
                  calls.c_str(), total.c_str(), mean.c_str(), least.c_str(), most.c_str(), bytes.c_str());
    return std::string(line);
  };
  std::string text = row("Name", "# of Calls", "Total", "Mean", "Least", "Most", "Bytes");
  for (const auto& one : averages) {
    text += row(one.key.c_str(), std::to_string(one.count), time_text(static_cast<double>(one.total_ns)),
                time_text(one.mean_ns()), time_text(static_cast<double>(one.least_ns)),
                time_text(static_cast<double>(one.most_ns)), std::to_string(one.bytes));
  }
  return text;
}

std::string chrome_trace(const std::vector<Event>& events, int pid, int rank) {
  json list = json::array();
  const std::string process = rank < 0 ? "process" : "rank " + std::to_string(rank);
  list.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", {{"name", process}}}});
  std::map<std::string, std::uint64_t> tracks;
  for (const Event& event : events) {
    std::uint64_t track = event.thread;
    if (event.kind == Event::Kind::kOperation) {
      const auto [place, is_new] = tracks.emplace(event.group_name, kGroupTracks + tracks.size());
      track = place->second;
      if (is_new) {
        const std::string name = "group " + event.group_name + " " + event.group_desc;
        list.push_back(
            {{"ph", "M"}, {"name", "thread_name"}, {"pid", pid}, {"tid", track}, {"args", {{"name", name}}}});
      }
    }
    list.push_back({{"ph", "X"},
                    {"cat", event.kind == Event::Kind::kUser ? "user_annotation" : "cpu_op"},
                    {"name", event.name},
                    {"pid", pid},
                    {"tid", track},
                    {"ts", static_cast<double>(event.start_ns) / 1000},
                    {"dur", static_cast<double>(event.end_ns - event.start_ns) / 1000},
                    {"args", arguments(event)}});
  }
  const json trace = {{"schemaVersion", 1},
                      {"displayTimeUnit", "ms"},
                      {"distributedInfo", {{"rank", rank}}},
                      {"traceEvents", std::move(list)}};
  return trace.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

void write_chrome_trace(const std::string& path, const std::vector<Event>& events) {
  const auto rank = base::env_integer(base::env::kRank);
  const std::string text = chrome_trace(events, ::getpid(), rank ? static_cast<int>(*rank) : -1);
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) throw std::runtime_error(path + " cannot be made: " + std::strerror(errno));
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !is_written) throw std::runtime_error(path + " cannot be written");
}

}  // namespace tensorplay::profiler
