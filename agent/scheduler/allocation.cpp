#include "agent/scheduler/allocation.hpp"

#include "agent/option_values.hpp"
#include "agent/usage_error.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace tensorplay::agent {
namespace {

constexpr std::size_t kPorts = 3;
/// Below the ports that Linux hands out by itself (32768 on), above most that services have.
constexpr std::uint32_t kFirstPort = 20000, kPortCount = 12000;

/// FNV-1a: all nodes must come to the same ports, whatever machine and library they run on.
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return hash;
}

std::vector<std::uint16_t> ports_for(const std::string& run_id) {
  std::vector<std::uint16_t> ports;
  for (std::uint32_t salt = 0; ports.size() < kPorts; ++salt) {
    const std::uint32_t hash = hash_of(run_id + "/" + std::to_string(salt));
    const auto port = static_cast<std::uint16_t>(kFirstPort + hash % kPortCount);
    if (std::find(ports.begin(), ports.end(), port) == ports.end()) ports.push_back(port);
  }
  return ports;
}

std::string short_name(std::string_view host) {
  return std::string(host.substr(0, host.find('.')));
}

}  // namespace

std::optional<Allocation> find_allocation(const Surroundings& around) {
  for (const auto& read : {slurm_allocation, pbs_allocation, lsf_allocation, grid_engine_allocation}) {
    if (auto allocation = read(around)) return allocation;
  }
  return std::nullopt;
}

std::string name_of_job(std::string_view scheduler, std::string_view job, int restart_count) {
  std::string name = std::string(scheduler) + "-" + std::string(job);
  // It names a log folder too: "1[3].server" and the like stay readable, what a path cannot hold goes.
  std::replace(name.begin(), name.end(), '/', '_');
  return restart_count > 0 ? name + "-r" + std::to_string(restart_count) : name;
}

std::optional<int> whole_number(const EnvironmentView& environment, std::string_view name) {
  const auto text = environment.find_non_empty(name);
  const auto number = text ? as_whole(*text) : std::nullopt;
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

std::vector<std::string> each_once(const std::vector<std::string>& words) {
  std::set<std::string> seen;
  std::vector<std::string> out;
  for (const std::string& word : words) {
    if (seen.insert(word).second) out.push_back(word);
  }
  return out;
}

std::optional<int> index_of_this_host(const Surroundings& around, const std::vector<std::string>& hosts) {
  const std::string own = short_name(around.machine.host_name());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (short_name(hosts[i]) == own) return static_cast<int>(i);
  }
  return std::nullopt;
}

SchedulerFacts make_facts(std::string name, const std::string& where, std::string run_id, int nodes, int node_index,
                          std::vector<std::string> hosts) {
  SchedulerFacts facts;
  facts.name = std::move(name);
  facts.nodes = nodes;
  facts.node_index = node_index;
  facts.hosts = std::move(hosts);
  facts.ports = ports_for(run_id);
  facts.run_id = std::move(run_id);
  facts.conclusion = where + ": ";
  if (nodes == 1) {
    facts.conclusion += "one node";
    return facts;
  }
  facts.conclusion += "node " + std::to_string(node_index) + " of " + std::to_string(nodes);
  if (facts.hosts.empty()) return facts;
  constexpr std::size_t kShown = 4;
  facts.conclusion += " (";
  for (std::size_t i = 0; i < facts.hosts.size(); ++i) {
    if (i == kShown && facts.hosts.size() > kShown + 1) {
      facts.conclusion += " ... " + facts.hosts.back();
      break;
    }
    facts.conclusion += (i == 0 ? "" : " ") + facts.hosts[i];
  }
  facts.conclusion += ")";
  return facts;
}

SchedulerFacts make_facts_of_script(const Allocation& allocation) {
  SchedulerFacts facts;
  facts.name = allocation.scheduler;
  facts.restart_count = allocation.restart_count;
  facts.conclusion = allocation.title + ", outside its tasks: one node";
  if (allocation.hosts.size() > 1) {
    facts.hint =
        allocation.title + " has " + std::to_string(allocation.hosts.size()) +
        " nodes but tprun was started on one, which it takes for all; to use them: " + allocation.how_to_use_all +
        "; if one is meant: --nnodes=1";
  }
  return facts;
}

void refuse_several_here(const std::string& where, int tasks, bool is_first, const std::string& remedy) {
  const std::string what = where + ": tprun was started " + std::to_string(tasks) +
                           " times on one node, but one tprun starts all of a node's workers; " + remedy;
  if (!is_first) throw RepeatedUsageError(what);
  throw UsageError(what);
}

}  // namespace tensorplay::agent
