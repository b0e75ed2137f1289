/// What the tprun that was given --hosts tells the one that it starts on each of them: facts like a scheduler's, in one
/// option (--host-member).
#pragma once

#include "agent/hosts/host_list.hpp"
#include "agent/scheduler/facts.hpp"

namespace tensorplay::agent {

/// Facts of host number `index`. `meeting` are the names or addresses under which the first hosts are reached.
SchedulerFacts facts_of_hosts(const std::vector<HostEntry>& hosts, const std::vector<std::string>& meeting,
                              const std::string& run_id, std::size_t index);

/// The option's value, and back. The latter throws UsageError for what the former did not write.
std::string format_host_member(const std::vector<HostEntry>& hosts, const std::vector<std::string>& meeting,
                               const std::string& run_id, std::size_t index);
SchedulerFacts parse_host_member(std::string_view value);

}  // namespace tensorplay::agent
