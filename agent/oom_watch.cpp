#include "agent/oom_watch.hpp"

#include "agent/entry_state.hpp"
#include "rendezvous/failure_judgement.hpp"
#include "runtime/base/fd.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace tensorplay::agent {
namespace {

constexpr std::string_view kCounter = "oom_kill";

/// A small file of /proc or /sys; empty when it cannot be read.
std::string read_small_file(const std::string& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::string text(16384, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

/// Calls `use` with each line until it says true.
template <class Use>
bool find_line(std::string_view text, Use use) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (use(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

bool holds_counter(const std::string& path) {
  return counter_in(read_small_file(path), kCounter).has_value();
}

}  // namespace

std::optional<std::uint64_t> counter_in(std::string_view text, std::string_view key) {
  std::optional<std::uint64_t> value;
  find_line(text, [&](std::string_view line) {
    if (line.size() <= key.size() || line.substr(0, key.size()) != key || line[key.size()] != ' ') return false;
    std::uint64_t number = 0;
    const auto* end = line.data() + line.size();
    if (std::from_chars(line.data() + key.size() + 1, end, number).ec == std::errc{}) value = number;
    return true;
  });
  return value;
}

std::optional<std::string> cgroup_of(std::string_view proc_cgroup, std::string_view controller) {
  std::optional<std::string> path;
  find_line(proc_cgroup, [&](std::string_view line) {
    const auto first = line.find(':');
    const auto second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) return false;
    auto names = line.substr(first + 1, second - first - 1);
    const auto is_it = [&] {
      if (controller.empty()) return names.empty();
      while (!names.empty()) {
        const auto end = std::min(names.find(','), names.size());
        if (names.substr(0, end) == controller) return true;
        names.remove_prefix(std::min(end + 1, names.size()));
      }
      return false;
    };
    if (!is_it()) return false;
    path = std::string(line.substr(second + 1));
    return true;
  });
  return path;
}

OomWatch::OomWatch(const std::string& root) {
  const auto own = root.empty() ? own_cgroups() : read_small_file(root + "/proc/self/cgroup");
  struct Place {
    const char* controller;
    const char* mount;
    const char* file;
  };
  static constexpr Place kPlaces[] = {{"memory", "/sys/fs/cgroup/memory", "/memory.oom_control"},
                                      {"", "/sys/fs/cgroup", "/memory.events"},
                                      {"", "/sys/fs/cgroup/unified", "/memory.events"}};
  for (const auto& place : kPlaces) {
    const auto cgroup = cgroup_of(own, place.controller);
    if (!cgroup) continue;
    // In a container the path may be the host's while the mount shows the container's own group at its root.
    for (const auto& path : {root + place.mount + *cgroup + place.file, root + place.mount + place.file}) {
      if (!holds_counter(path)) continue;
      path_ = path;
      begin();
      return;
    }
  }
  const auto machine = root + "/proc/vmstat";
  if (holds_counter(machine)) {
    path_ = machine;
    is_machine_wide_ = true;
  }
  begin();
}

std::optional<std::uint64_t> OomWatch::read() const {
  return path_.empty() ? std::nullopt : counter_in(read_small_file(path_), kCounter);
}

void OomWatch::begin() {
  before_ = read().value_or(0);
}

OomKills OomWatch::kills() const {
  const auto now = read().value_or(before_);
  return {now > before_ ? now - before_ : 0, is_machine_wide_};
}

void mark_oom(std::vector<rendezvous::WorkerFailure>& failures, const OomKills& kills) {
  using rendezvous::WorkerFailure;
  std::vector<WorkerFailure*> killed;
  std::vector<WorkerFailure*> others;
  for (auto& failure : failures) {
    failure.out_of_memory = false;
    if (failure.stopped_by_us || failure.is_startup_failure) continue;
    if (failure.signal == SIGKILL) {
      killed.push_back(&failure);
    } else if (rendezvous::kind_of(failure) == rendezvous::FailureKind::kOwn) {
      others.push_back(&failure);
    }
  }
  const auto by_end = [](const WorkerFailure* a, const WorkerFailure* b) { return a->ended_at < b->ended_at; };
  std::sort(killed.begin(), killed.end(), by_end);
  const auto count = std::min<std::uint64_t>(kills.count, killed.size());
  for (std::uint64_t i = 0; i < count; ++i) killed[i]->out_of_memory = true;
  if (kills.count > killed.size() && killed.empty() && !kills.is_machine_wide && !others.empty()) {
    (*std::min_element(others.begin(), others.end(), by_end))->out_of_memory = true;
  }
}

}  // namespace tensorplay::agent
