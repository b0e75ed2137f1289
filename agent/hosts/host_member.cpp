#include "agent/hosts/host_member.hpp"

#include "agent/scheduler/allocation.hpp"
#include "agent/usage_error.hpp"

#include <nlohmann/json.hpp>

namespace tensorplay::agent {

SchedulerFacts facts_of_hosts(const std::vector<HostEntry>& hosts, const std::vector<std::string>& meeting,
                              const std::string& run_id, std::size_t index) {
  std::vector<std::string> names;
  for (const HostEntry& host : hosts) names.push_back(host.name);
  auto facts = make_facts("hosts", "--hosts", run_id, static_cast<int>(hosts.size()), static_cast<int>(index), names);
  facts.meeting = meeting;
  facts.workers_here = hosts.at(index).slots;
  return facts;
}

std::string format_host_member(const std::vector<HostEntry>& hosts, const std::vector<std::string>& meeting,
                               const std::string& run_id, std::size_t index) {
  nlohmann::json out{{"index", index}, {"run_id", run_id}, {"meeting", meeting}, {"hosts", nlohmann::json::array()}};
  for (const HostEntry& host : hosts) out["hosts"].push_back({host.name, host.slots.value_or(0)});
  return out.dump();
}

SchedulerFacts parse_host_member(std::string_view value) {
  try {
    const auto in = nlohmann::json::parse(value);
    std::vector<HostEntry> hosts;
    for (const auto& host : in.at("hosts")) {
      const int slots = host.at(1).get<int>();
      hosts.push_back({host.at(0).get<std::string>(), slots > 0 ? std::optional(slots) : std::nullopt});
    }
    return facts_of_hosts(hosts, in.at("meeting").get<std::vector<std::string>>(), in.at("run_id").get<std::string>(),
                          in.at("index").get<std::size_t>());
  } catch (const std::exception&) {
    throw UsageError("--host-member: is tprun's own, and not as it writes it; drop it");
  }
}

}  // namespace tensorplay::agent
