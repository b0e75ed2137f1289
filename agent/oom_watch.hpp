/// Whether the kernel's OOM killer struck among our workers. Nothing tells a parent that a SIGKILL came from there, so
/// the kernel's counters are read before and after: the memory cgroup's (v2 memory.events, v1 memory.oom_control), and
/// /proc/vmstat's where there is no cgroup.
#pragma once

#include "rendezvous/messages.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::agent {

/// How many processes the OOM killer took since a moment.
struct OomKills {
  std::uint64_t count = 0;
  bool is_machine_wide = false;  ///< Of the whole machine: perhaps not ours.
};

/// Thread rules: one thread. Reads small files of /proc and /sys; never throws.
class OomWatch {
 public:
  /// Finds the counter. `root` is put before /proc and /sys, for tests.
  explicit OomWatch(const std::string& root = "");

  /// From here on kills are counted.
  void begin();
  OomKills kills() const;

 private:
  std::optional<std::uint64_t> read() const;

  std::string path_;  ///< Empty: no counter was found.
  bool is_machine_wide_ = false;
  std::uint64_t before_ = 0;
};

/// Sets `out_of_memory` where the kills belong: on the workers that SIGKILL ended and not ours, earliest first. One
/// more kill than those took a child of a worker: it belongs to the earliest other failure that does not speak of a
/// peer.
void mark_oom(std::vector<rendezvous::WorkerFailure>& failures, const OomKills& kills);

/// The number behind `key` in a text of "key number" lines.
std::optional<std::uint64_t> counter_in(std::string_view text, std::string_view key);

/// The cgroup of a controller ("memory"; "" for the unified hierarchy) in the text of /proc/self/cgroup.
std::optional<std::string> cgroup_of(std::string_view proc_cgroup, std::string_view controller);

}  // namespace tensorplay::agent
