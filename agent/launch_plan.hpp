/// What tprun is going to do, as decided from command line, environment, configuration file and machine. A value:
/// made once by make_launch_plan(), printed by --dry-run, executed by the agent. Nothing below it looks at argv or at
/// an option's environment variable again.
#pragma once

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
  std::string backend = "static";
  std::string endpoint;
  std::string run_id = "none";
  std::map<std::string, std::string> conf;
};

/// What a worker executes, the same for all ranks but for ${local_rank}.
struct ProgramPlan {
  std::vector<std::string> argv;    ///< argv[0] is the file to execute, already found.
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
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;  ///< 0: any free port.
  std::string local_addr;
  std::string role = "default";
  int max_restarts = 0;
  ProgramPlan program;
  LoggingPlan logging;
  NumaBinding numa_binding = NumaBinding::kNone;
  std::vector<int> stop_signals;  ///< --signals-to-handle.
  std::chrono::milliseconds shutdown_timeout{30'000};
  bool virtual_local_rank = false;
  bool leave_daemons = false;
  StdinMode stdin_mode = StdinMode::kDefault;
  std::string report_file;
  std::vector<std::string> notes;  ///< Lines to print once at the start: what was accepted but has no effect.
};

}  // namespace tensorplay::agent
