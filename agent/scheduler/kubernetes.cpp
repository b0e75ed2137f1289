// Kubernetes, when --scheduler=kubernetes says so: pods of an indexed Job may just as well each work alone. The pods of
// a Job are called JOB-INDEX, those of a JobSet JOBSET-JOB-JOBINDEX-INDEX, and with a headless service each is found as
// NAME.SERVICE. How many there are the user says, but for the training operator, which sets WORLD_SIZE and RANK.
#include "agent/scheduler/allocation.hpp"
#include "agent/scheduler/readers.hpp"
#include "agent/scheduler/variables.hpp"
#include "agent/usage_error.hpp"
#include "runtime/base/environment.hpp"

namespace tensorplay::agent {
namespace {

/// "train-2.workers.ns.svc.cluster.local" and 2: "train-" and ".workers.ns.svc.cluster.local".
std::pair<std::string, std::string> around_index(const std::string& host, int index) {
  const auto dot = host.find('.');
  const std::string name = host.substr(0, dot), tail = "-" + std::to_string(index);
  if (!name.ends_with(tail)) {
    throw UsageError("--scheduler=kubernetes: this pod is called " + name + " and has index " + std::to_string(index) +
                     ", but the pods of an indexed Job are called NAME-INDEX; give --rdzv-endpoint");
  }
  return {name.substr(0, name.size() - tail.size() + 1), dot == std::string::npos ? "" : host.substr(dot)};
}

}  // namespace

std::optional<SchedulerFacts> read_kubernetes(const Surroundings& around, bool is_named) {
  if (!is_named) return std::nullopt;
  const EnvironmentView& environment = around.environment;
  if (const auto index = whole_number(environment, scheduler_env::kJobCompletionIndex)) {
    const auto [before, behind] = around_index(around.machine.host_name(), *index);
    std::string job = before.substr(0, before.size() - 1);
    auto facts = make_facts("kubernetes", "Kubernetes job " + job, name_of_job("kubernetes", job, 0), 1, *index, {});
    facts.nodes = std::nullopt;
    // The first ones: as many as it takes to meet, and to meet again when one of them is lost.
    for (int i = 0; i < 3; ++i) facts.hosts.push_back(before + std::to_string(i) + behind);
    facts.conclusion = "Kubernetes job " + job + ": index " + std::to_string(*index);
    return facts;
  }
  const auto master = environment.find_non_empty(base::env::kMasterAddr);
  const auto rank = whole_number(environment, base::env::kRank);
  const auto size = whole_number(environment, base::env::kWorldSize);
  if (!master || !rank || !size) return std::nullopt;
  return make_facts("kubernetes", "Kubernetes training job at " + std::string(*master),
                    name_of_job("kubernetes", *master, 0), *size, *rank, {std::string(*master)});
}

}  // namespace tensorplay::agent
