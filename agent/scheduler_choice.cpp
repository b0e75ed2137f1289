#include "agent/scheduler_choice.hpp"

#include "agent/hosts/host_member.hpp"
#include "agent/option_values.hpp"
#include "agent/usage_error.hpp"

#include <algorithm>

namespace tensorplay::agent {
namespace {

bool means_one_node(const Settings& settings) {
  if (settings.is_on(OptionId::kStandalone)) return true;
  const Setting* nodes = settings.find(OptionId::kNnodes);
  return nodes != nullptr && parse_node_range(settings.quoted(OptionId::kNnodes), nodes->value).second == 1;
}

}  // namespace

bool gives_rendezvous(const Settings& settings) {
  constexpr OptionId kChoices[] = {OptionId::kRdzvBackend, OptionId::kRdzvEndpoint, OptionId::kNodeRank,
                                   OptionId::kMasterAddr, OptionId::kMasterPort};
  return settings.is_on(OptionId::kStandalone) ||
         std::any_of(std::begin(kChoices), std::end(kChoices),
                     [&settings](OptionId id) { return !settings.value_or(id, "").empty(); });
}

SchedulerFacts choose_scheduler_facts(const Settings& settings, const Surroundings& around, std::string_view choice) {
  if (means_one_node(settings)) return {};
  if (choice == "auto" && gives_rendezvous(settings)) return {};
  return find_scheduler_facts(around, choice);
}

std::optional<SchedulerFacts> choose_host_facts(const Settings& settings, const Surroundings& around,
                                                LaunchPlan& plan) {
  if (settings.is_given(OptionId::kHostMember)) {
    for (const OptionId id : {OptionId::kHosts, OptionId::kHostfile}) {
      if (settings.is_given(id) && settings.find(id)->source == Source::kCommandLine) {
        throw UsageError(settings.quoted(id) + ": this tprun was started by one with --hosts, and starts no others");
      }
    }
    return parse_host_member(settings.find(OptionId::kHostMember)->value);
  }
  const std::string hosts = settings.value_or(OptionId::kHosts, ""), file = settings.value_or(OptionId::kHostfile, "");
  if (hosts.empty() && file.empty()) return std::nullopt;
  const std::string where = settings.quoted(hosts.empty() ? OptionId::kHostfile : OptionId::kHosts);
  if (!hosts.empty() && !file.empty()) {
    throw UsageError(settings.quoted(OptionId::kHostfile) + ": " + where + " names hosts too; drop one of them");
  }
  if (!file.empty()) {
    const auto text = around.machine.read_file(file);
    if (!text) throw UsageError(where + ": cannot be read; give a file with one host on each line");
    plan.hosts = parse_hostfile(file, *text);
  } else {
    plan.hosts = parse_hosts(where, hosts);
  }
  plan.ssh_command = settings.value_or(OptionId::kSshCommand, "ssh");
  if (trimmed(plan.ssh_command).empty()) throw UsageError("--ssh-command: is empty; give a command such as ssh");
  if (means_one_node(settings) && plan.hosts.size() > 1) {
    throw UsageError(where + ": names " + std::to_string(plan.hosts.size()) +
                     " hosts, but --standalone and --nnodes=1 mean one; drop one of them");
  }
  return facts_of_hosts(plan.hosts, {}, "hosts-" + around.machine.fresh_uuid(), 0);
}

void fit_nodes_to_scheduler(const Settings& settings, const SchedulerFacts& facts, LaunchPlan& plan) {
  plan.scheduler = facts.conclusion;
  const Setting* nodes = settings.find(OptionId::kNnodes);
  if (nodes == nullptr && facts.hosts.size() > 1 && !facts.nodes) {
    throw UsageError(facts.conclusion + ": how many nodes the job has is not told; give --nnodes");
  }
  if (nodes == nullptr) plan.min_nodes = plan.max_nodes = facts.nodes.value_or(1);
  if (nodes != nullptr && facts.nodes) {
    if (plan.min_nodes > *facts.nodes) {
      throw UsageError(settings.quoted(OptionId::kNnodes) + ": " + facts.conclusion +
                       "; give no more, or --rdzv-endpoint for nodes from elsewhere");
    }
    plan.max_nodes = std::min(plan.max_nodes, *facts.nodes);
  }
  if (!facts.hint.empty()) plan.notes.push_back(facts.hint);
  plan.says_scheduler = plan.max_nodes > 1 && facts.node_index == 0 && !facts.conclusion.empty();
}

}  // namespace tensorplay::agent
