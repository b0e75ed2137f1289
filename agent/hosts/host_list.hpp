/// --hosts and --hostfile: on which hosts a tprun is started. Cores: text in, hosts out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::agent {

struct HostEntry {
  std::string name;          ///< As ssh takes it; an IPv6 address without brackets.
  std::optional<int> slots;  ///< Workers there unless --nproc-per-node says otherwise.
  bool operator==(const HostEntry&) const = default;
};

/// "n1,n2:8,[fd00::1]:8,n[1-4]:2". Throws UsageError, beginning with `where`.
std::vector<HostEntry> parse_hosts(const std::string& where, std::string_view text);

/// One host a line: "n1", "n1:8", "n1 slots=8 max_slots=8", "n1 8 queue processors" (Grid Engine's), "user@n1"; '#'
/// begins a comment. A host that stands on several lines without slots has one for each (PBS's). Throws UsageError.
std::vector<HostEntry> parse_hostfile(const std::string& where, std::string_view text);

}  // namespace tensorplay::agent
