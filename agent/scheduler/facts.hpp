/// What is known of the batch scheduler or MPI launcher that started tprun: the nodes of the job, this one's place
/// among them, and where and under which name they can meet.
///
/// Detection is a core: environment and machine in, facts out. It concludes that there are other nodes only from
/// variables that can mean nothing else, since whoever is wrong there waits for peers that never come. What each
/// scheduler says is in its own file here, and in a table in docs/schedulers.md.
#pragma once

#include "agent/environment_view.hpp"
#include "agent/machine.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::agent {

struct SchedulerFacts {
  std::string name;                  ///< As --scheduler has it; empty: nothing was concluded.
  std::optional<int> nodes;          ///< That each run a tprun of this job; nullopt: the scheduler does not tell.
  int node_index = 0;                ///< This node's, from 0.
  std::vector<std::string> hosts;    ///< In the order of their indexes; empty where the scheduler does not tell.
  std::vector<std::string> meeting;  ///< How the first ones are reached, where their names will not do; else empty.
  std::optional<int> workers_here;   ///< GPUs of the job on this node, or slots, where that is told.
  std::string run_id;                ///< The same on all nodes, another for each job, step and restart.
  std::vector<std::uint16_t> ports;  ///< Where to meet on hosts[0] and its successors: all nodes derive the same ones.
  int restart_count = 0;             ///< How often the scheduler has started this job again.
  std::string conclusion;            ///< One line for people: "SLURM job 42, step 0: node 0 of 2 (n1 n2)".
  std::string hint;                  ///< A line worth showing: this is one node of an allocation that has more.
};

/// What detection looks at. Views; both must outlive it.
struct Surroundings {
  const EnvironmentView& environment;
  const Machine& machine;
};

/// `choice` is --scheduler's value: auto, none, or the name of one, which is then believed on weaker evidence too.
/// Throws UsageError when that one is not here, or when it started several tprun on this node.
SchedulerFacts find_scheduler_facts(const Surroundings& around, std::string_view choice);

/// The time from the scheduler's first signal to its SIGKILL; nullopt where that is not known.
std::optional<std::chrono::milliseconds> find_kill_wait(const Surroundings& around, std::string_view choice);

}  // namespace tensorplay::agent
