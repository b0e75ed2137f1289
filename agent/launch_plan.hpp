/// What tprun is going to do, as decided from command line, environment, configuration file and machine. A value:
/// made once by make_launch_plan(), printed by --dry-run, executed by the agent. Nothing below it looks at argv or at
/// an option's environment variable again.
#pragma once

#include "agent/hosts/host_list.hpp"
#include "rendezvous/discovery/discovery.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::agent {

/// The name tprun was called by decides small things.
enum class Front { kTprun, kTorchrun, kTplaunch };

/// Which of a worker's streams: bit 0 stdout, bit 1 stderr.
using StreamMask = std::uint8_t;
inline constexpr StreamMask kStdout = 1;
inline constexpr StreamMask kStderr = 2;

/// --redirects and --tee: one mask for all, or one for each listed local rank (the others 0).
struct StreamSelection {
  StreamMask all = 0;
  std::map<int, StreamMask> by_local_rank;
  StreamMask mask_for(int local_rank) const {
    if (by_local_rank.empty()) return all;
    const auto found = by_local_rank.find(local_rank);
    return found == by_local_rank.end() ? StreamMask{0} : found->second;
  }
};

enum class StdinMode { kDefault, kNone, kFirst, kAll };
enum class NumaBinding { kNone, kNode, kSocket, kExclusive, kCoreComplex };

struct RendezvousPlan {
  std::string backend = "static";  ///< static, c10d, file or etcd-v3.
  std::string endpoint;            ///< As people read it; the parts are in `endpoints` or `folder`.
  std::vector<rendezvous::Endpoint> endpoints;
  std::string folder;       ///< For file.
  std::string etcd_prefix;  ///< For etcd-v3: what its keys begin with; empty: the usual.
  std::string run_id = "none";
  std::map<std::string, std::string> conf;
  std::string token_file;          ///< --rdzv-token-file; empty: none was given.
  std::string secret;              ///< What it holds, or TPRUN_RDZV_TOKEN; empty: none. Never printed.
  std::optional<bool> is_host;     ///< is_host of --rdzv-conf.
  std::optional<int> node_index;   ///< The scheduler's index of this node.
  std::vector<std::string> hosts;  ///< Who is expected, where the scheduler or the hostfile tells: names for people.
  std::chrono::milliseconds join_timeout{600'000};  ///< For MIN nodes to come, each time.
  std::chrono::milliseconds last_call{30'000};      ///< After MIN nodes, for more.
  std::chrono::milliseconds replacement_wait{0};    ///< After a loss, for a replacement, when MIN nodes are there.
  std::chrono::milliseconds keep_alive{15'000};     ///< Silence after which a node is lost; binds both sides.
};

/// What a worker executes, the same for all ranks but for ${local_rank}.
struct ProgramPlan {
  std::vector<std::string> argv;    ///< argv[0] is the file to execute, already found.
  std::size_t first_argument = 1;   ///< Index in argv of the program's first own argument (behind Python's words).
  std::string display_name;         ///< For messages and the report.
  std::string reason;               ///< Why this was chosen, for --dry-run ("a .py file: run by python3 in PATH").
  bool appends_local_rank = false;  ///< tplaunch without --use-env.
  int startup_errno = 0;            ///< Non-zero: it is already known that it cannot be started.
};

struct LoggingPlan {
  std::string log_dir;  ///< Empty: no files were asked for.
  StreamSelection redirects;
  StreamSelection tee;
  std::string line_prefix_template;     ///< Empty: "[${role_name}${local_rank}]:".
  std::vector<int> local_ranks_filter;  ///< Empty: all are shown on the console.
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
};

struct LaunchPlan {
  Front front = Front::kTprun;
  int min_nodes = 1;
  int max_nodes = 1;
  int nproc_per_node = 1;
  RendezvousPlan rdzv;
  int node_rank = 0;
  bool node_rank_given = false;
  /// What workers are told, as far as it is known before the rendezvous. On one node the agent gives master_addr as it
  /// stands here and serves the workers' store where that name leads; with the default that is loopback.
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;  ///< 0: any free port.
  std::string local_addr;
  std::string role = "default";
  int max_restarts = 0;
  std::optional<std::chrono::milliseconds> restart_window = std::nullopt;  ///< Restarts come back after this.
  int no_progress_limit = 0;  ///< Restarts in a row without progress that end the job; 0: no such rule.
  std::chrono::milliseconds progress_after{60'000};  ///< An attempt that ran for so long made progress.
  std::string scheduler;         ///< What tprun concluded about where it runs, in a line; empty: nothing.
  bool says_scheduler = false;   ///< Shown to people by default, not only at INFO: on the first of many nodes.
  std::vector<HostEntry> hosts;  ///< --hosts: this process starts a tprun on each of them, and no worker itself.
  std::string ssh_command;       ///< With what.
  ProgramPlan program;
  LoggingPlan logging;
  NumaBinding numa_binding = NumaBinding::kNone;
  std::vector<std::vector<int>> worker_cpus;  ///< By local rank: the CPUs it is bound to. Empty: nothing is bound.
  std::vector<int> stop_signals;              ///< --signals-to-handle.
  std::string signals_to_handle;              ///< The same as text, for TORCHELASTIC_SIGNALS_TO_HANDLE.
  std::chrono::milliseconds shutdown_timeout{30'000};
  bool virtual_local_rank = false;
  bool shares_agent_store = true;  ///< Workers are clients of the agent's store; else RANK 0 hosts one itself.
  bool leave_daemons = false;
  StdinMode stdin_mode = StdinMode::kDefault;
  std::string report_file;
  std::vector<std::string> notes;  ///< Lines to print once at the start: what was accepted but has no effect.
};

}  // namespace tensorplay::agent
