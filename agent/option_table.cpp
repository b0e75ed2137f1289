#include "agent/option_table.hpp"

#include <algorithm>
#include <array>

namespace tensorplay::agent {
namespace {

constexpr auto kFlag = OptionKind::kFlag;
constexpr auto kValue = OptionKind::kValue;
constexpr auto kTorchrun = OptionOrigin::kTorchrun;
constexpr auto kTprun = OptionOrigin::kTprun;
constexpr auto kTplaunch = OptionOrigin::kTplaunch;

// clang-format off
constexpr std::array<OptionSpec, kOptionCount> kTable = {{
    // ---- How many, and where -------------------------------------------------------------------------------------
    {OptionId::kNprocPerNode, OptionGroup::kSize, kValue, kTorchrun, "nproc-per-node", 0, "N", "1", "auto|cpu|gpu|xpu",
     ValueHint::kChoice, true, true,
     "workers on this node: a number, or one for each cpu, gpu, xpu; auto takes GPUs, else CPUs",
     "CPUs are those tprun may use (its affinity mask). GPUs are counted without CUDA, as CUDA would show them: "
     "CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES and ZE_AFFINITY_MASK are honoured."},
    {OptionId::kNnodes, OptionGroup::kSize, kValue, kTorchrun, "nnodes", 0, "N|MIN:MAX", "1", "", ValueHint::kNone,
     true, true, "nodes in the job: a number, or a range for a job that may shrink and grow",
     "With a range the job starts as soon as MIN nodes are there and nobody else comes for a while."},
    {OptionId::kNodeRank, OptionGroup::kSize, kValue, kTorchrun, "node-rank", 0, "N", "0", "", ValueHint::kNone, true,
     true, "this node's index, from 0; 0 hosts a static rendezvous",
     "With another rendezvous it orders the ranks, when the indices given are all distinct."},
    {OptionId::kStandalone, OptionGroup::kSize, kFlag, kTorchrun, "standalone", 0, "", "", "", ValueHint::kNone, true,
     true, "this node alone, with a port and a run id of its own",
     "Replaces --rdzv-backend, --rdzv-endpoint and --rdzv-id. A job on one node does this by itself unless a port or "
     "an endpoint is given."},
    {OptionId::kRole, OptionGroup::kSize, kValue, kTorchrun, "role", 0, "NAME", "default", "", ValueHint::kNone, true,
     true, "what this node's workers are called: ROLE_NAME and the prefix of their lines", ""},

    // ---- What is run ---------------------------------------------------------------------------------------------
    {OptionId::kModule, OptionGroup::kProgram, kFlag, kTorchrun, "module", 'm', "", "", "", ValueHint::kNone, true,
     true, "PROGRAM is a Python module: run it as python -m does", ""},
    {OptionId::kNoPython, OptionGroup::kProgram, kFlag, kTorchrun, "no-python", 0, "", "", "", ValueHint::kNone, true,
     true, "never put Python in front of PROGRAM; look for a bare name in PATH first", ""},
    {OptionId::kRunPath, OptionGroup::kProgram, kFlag, kTorchrun, "run-path", 0, "", "", "", ValueHint::kNone, true,
     true, "accepted for torchrun's sake: PROGRAM is run as python PROGRAM",
     "torchrun runs the script as a function inside a process of its own; here it is a program like any other. Wins "
     "over --no-python and --module."},
    {OptionId::kUseEnv, OptionGroup::kProgram, kFlag, kTplaunch, "use-env", 0, "", "", "", ValueHint::kNone, true,
     true, "do not put --local-rank=N in front of PROGRAM's arguments (tplaunch only)", ""},
    {OptionId::kVirtualLocalRank, OptionGroup::kProgram, kFlag, kTorchrun, "virtual-local-rank", 0, "", "", "",
     ValueHint::kNone, true, true, "every worker sees one GPU and LOCAL_RANK 0",
     "CUDA_VISIBLE_DEVICES (and HIP_VISIBLE_DEVICES where it is set) is cut down to the worker's own entry."},
    {OptionId::kNumaBinding, OptionGroup::kProgram, kValue, kTorchrun, "numa-binding", 0, "KIND", "",
     "node|socket|exclusive|core-complex", ValueHint::kChoice, false, true,
     "bind each worker to CPUs near its GPU: node, socket, exclusive or core-complex",
     "node: the CPUs of the GPU's NUMA node. socket: those of the whole socket. exclusive: an even share of the node's "
     "physical cores for each of its GPUs. core-complex: one group of cores that share a last-level cache. Only CPUs "
     "that tprun may use are taken; numactl is not needed."},
    {OptionId::kStdin, OptionGroup::kProgram, kValue, kTprun, "stdin", 0, "WHO", "", "none|0|all", ValueHint::kChoice,
     false, true, "who reads tprun's standard input: none, 0 (rank 0) or all",
     "By default a single worker inherits it; of several, rank 0 does and the others read /dev/null."},
    {OptionId::kStartMethod, OptionGroup::kProgram, kValue, kTorchrun, "start-method", 0, "KIND", "",
     "spawn|fork|forkserver", ValueHint::kChoice, true, true,
     "accepted for torchrun's sake: has no meaning for programs", ""},

    // ---- When something fails or ends ----------------------------------------------------------------------------
    {OptionId::kMaxRestarts, OptionGroup::kFailure, kValue, kTorchrun, "max-restarts", 0, "N", "0", "",
     ValueHint::kNone, true, true, "how often the whole world may be started again after a worker failed",
     "A program that cannot be started at all is never started again."},
    {OptionId::kRestartWindow, OptionGroup::kFailure, kValue, kTprun, "restart-window", 0, "SECONDS", "", "",
     ValueHint::kNone, true, true, "a restart comes back after so long: --max-restarts is a budget for this stretch",
     "So a job of weeks outlives a bad node a day, and a crash loop still ends."},
    {OptionId::kNoProgressLimit, OptionGroup::kFailure, kValue, kTprun, "no-progress-limit", 0, "N[:SECONDS]", "", "",
     ValueHint::kNone, true, true, "end the job, with exit code 93, when N restarts in a row made no progress",
     "A restart made progress when the world ran for SECONDS (60 by default) before it failed again; rounds that only a "
     "join or a loss ended are added up. 93 says that queueing the job again does not help."},
    {OptionId::kShutdownTimeout, OptionGroup::kFailure, kValue, kTorchrun, "shutdown-timeout", 0, "SECONDS", "30", "",
     ValueHint::kNone, true, true, "grace between the stop signal and SIGKILL, for every kind of stop",
     "Without it TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 5 seconds less than the scheduler's own kill wait where that is "
     "known, else 30 seconds."},
    {OptionId::kSignalsToHandle, OptionGroup::kFailure, kValue, kTorchrun, "signals-to-handle", 0, "NAMES",
     "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "", ValueHint::kNone, true, true,
     "signals that stop the job; SIGUSR1 and SIGUSR2 are passed on to the workers unless listed", ""},
    {OptionId::kLeaveDaemons, OptionGroup::kFailure, kFlag, kTprun, "leave-daemons", 0, "", "", "", ValueHint::kNone,
     false, true, "let processes that workers left in the background live when the job ended well",
     "Without it nothing that descends from a worker outlives tprun."},
    {OptionId::kMonitorInterval, OptionGroup::kFailure, kValue, kTorchrun, "monitor-interval", 0, "SECONDS", "", "",
     ValueHint::kNone, true, true, "accepted for torchrun's sake: tprun is told of a worker's end and never polls", ""},

    // ---- Output --------------------------------------------------------------------------------------------------
    {OptionId::kLogDir, OptionGroup::kOutput, kValue, kTorchrun, "log-dir", 0, "FOLDER", "", "", ValueHint::kFolder,
     true, true, "keep the workers' files under FOLDER/<run id>_<random>/attempt_<n>/<local rank>/",
     "/dev/null keeps no files at all and turns error files off."},
    {OptionId::kRedirects, OptionGroup::kOutput, kValue, kTorchrun, "redirects", 'r', "MASK", "0", "0|1|2|3",
     ValueHint::kChoice, true, true, "streams that go to files instead: 0 none, 1 stdout, 2 stderr, 3 both; or RANK:MASK,...",
     "Ranks are local ranks; those not listed keep the console."},
    {OptionId::kTee, OptionGroup::kOutput, kValue, kTorchrun, "tee", 't', "MASK", "0", "0|1|2|3", ValueHint::kChoice,
     true, true, "streams that go to files and, line by line with a prefix, to the console", ""},
    {OptionId::kLocalRanksFilter, OptionGroup::kOutput, kValue, kTorchrun, "local-ranks-filter", 0, "RANKS", "", "",
     ValueHint::kNone, true, true, "show only these local ranks on the console (0,3); files are not affected", ""},
    {OptionId::kLogLinePrefixTemplate, OptionGroup::kOutput, kValue, kTorchrun, "log-line-prefix-template", 0, "TEXT",
     "[${role_name}${local_rank}]:", "", ValueHint::kNone, true, true,
     "what --tee puts before a line: ${role_name}, ${rank}, ${local_rank}, ${hostname}",
     "Without it TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE is used."},
    {OptionId::kDuplicateStdoutFilters, OptionGroup::kOutput, kValue, kTorchrun, "duplicate-stdout-filters", 0, "TEXTS",
     "", "", ValueHint::kNone, true, true, "copy lines of --tee'd stdout that contain one of TEXTS to filtered_stdout.log",
     "TEXTS are separated by commas; two commas stand for one in a text."},
    {OptionId::kDuplicateStderrFilters, OptionGroup::kOutput, kValue, kTorchrun, "duplicate-stderr-filters", 0, "TEXTS",
     "", "", ValueHint::kNone, true, true, "the same for stderr and filtered_stderr.log", ""},
    {OptionId::kReport, OptionGroup::kOutput, kValue, kTprun, "report", 0, "FILE", "", "", ValueHint::kFile, false, true,
     "write how the job went to FILE as JSON", ""},
    {OptionId::kLogsSpecs, OptionGroup::kOutput, kValue, kTorchrun, "logs-specs", 0, "NAME", "", "default",
     ValueHint::kChoice, false, true, "only default: torchrun's others are Python plug-ins", ""},
    {OptionId::kEventLogHandler, OptionGroup::kOutput, kValue, kTorchrun, "event-log-handler", 0, "NAME", "null",
     "null|console|dynamic_rendezvous", ValueHint::kChoice, true, true,
     "accepted for torchrun's sake: events are not written; see --report", ""},

    // ---- Many nodes ----------------------------------------------------------------------------------------------
    {OptionId::kRdzvBackend, OptionGroup::kNodes, kValue, kTorchrun, "rdzv-backend", 0, "NAME", "static",
     "static|c10d|tcpstore|etcd-v3|etcd-v2|etcd|file", ValueHint::kChoice, true, true,
     "how the nodes find each other: static, c10d, etcd-v3 or file",
     "tcpstore is another name for c10d; etcd and etcd-v2 are taken for etcd-v3."},
    {OptionId::kRdzvEndpoint, OptionGroup::kNodes, kValue, kTorchrun, "rdzv-endpoint", 0, "HOST:PORT", "", "",
     ValueHint::kNone, true, true, "where they meet; the same on every node", "The port of c10d is 29400 unless given, "
     "that of etcd 2379. An IPv6 address with a port stands in brackets. c10d and etcd take a list with commas: when a "
     "host is lost, its agents meet at the next one. For file: a folder that all nodes share."},
    {OptionId::kRdzvId, OptionGroup::kNodes, kValue, kTorchrun, "rdzv-id", 0, "ID", "", "", ValueHint::kNone, true,
     true, "the run's name: TORCHELASTIC_RUN_ID and the prefix of its log folder",
     "Without it a job on one node draws a fresh UUID; with more nodes it is none."},
    {OptionId::kRdzvConf, OptionGroup::kNodes, kValue, kTorchrun, "rdzv-conf", 0, "KEY=VALUE,...", "", "",
     ValueHint::kNone, true, true, "timeouts and other settings of the rendezvous, such as join_timeout=600",
     "Keys: timeout, join_timeout, last_call_timeout, replacement_wait, close_timeout, heartbeat_timeout, keep_alive_interval, "
     "keep_alive_max_attempt, read_timeout, is_host, store_type, cas_backoff_max_seconds, rank, protocol, ssl_cert, ssl_cert_key, ca_cert, "
     "etcd_prefix, cacert, cert, key. Others are ignored with a line that says so."},
    {OptionId::kRdzvTokenFile, OptionGroup::kNodes, kValue, kTprun, "rdzv-token-file", 0, "FILE", "", "",
     ValueHint::kFile, false, true, "a file with the job's secret: only agents that know it are let in",
     "The same secret on every node, 16 bytes or more; the file must be its owner's alone (chmod 600). Instead, "
     "TPRUN_RDZV_TOKEN may hold the secret itself. It is never sent, and workers are not given it."},
    {OptionId::kMasterAddr, OptionGroup::kNodes, kValue, kTorchrun, "master-addr", 0, "HOST", "127.0.0.1", "",
     ValueHint::kNone, true, true, "the host of node 0 (static rendezvous without --rdzv-endpoint)", ""},
    {OptionId::kMasterPort, OptionGroup::kNodes, kValue, kTorchrun, "master-port", 0, "PORT", "29500", "",
     ValueHint::kNone, true, true, "its port; on one node a free one is taken unless this is given", ""},
    {OptionId::kLocalAddr, OptionGroup::kNodes, kValue, kTorchrun, "local-addr", 0, "HOST", "", "", ValueHint::kNone,
     true, true, "the address by which the other nodes reach this one", ""},
    {OptionId::kScheduler, OptionGroup::kNodes, kValue, kTprun, "scheduler", 0, "NAME", "auto",
     "auto|none|slurm|pbs|lsf|sge|openmpi|hydra|kubernetes", ValueHint::kChoice, false, true,
     "the batch scheduler whose facts are used; none ignores it",
     "By itself tprun reads where it runs when no rendezvous option is given, and takes several nodes only for what can "
     "mean nothing else."},
    {OptionId::kHosts, OptionGroup::kNodes, kValue, kTprun, "hosts", 0, "HOST[:N],...", "", "", ValueHint::kNone, false,
     true, "start a tprun on each of these hosts through ssh; N workers there",
     "Without a scheduler. The hosts need tprun and the working folder at the same paths, and a login without a "
     "password. The environment is passed on; what the workers print comes back line by line; when this tprun stops, "
     "or is killed, everything stops."},
    {OptionId::kHostfile, OptionGroup::kNodes, kValue, kTprun, "hostfile", 0, "FILE", "", "", ValueHint::kFile, false,
     true, "the same with hosts from a file, one a line: n1 slots=8",
     "n1:8 and Grid Engine's lines will do too; a host on several lines has a worker for each (PBS)."},
    {OptionId::kSshCommand, OptionGroup::kNodes, kValue, kTprun, "ssh-command", 0, "COMMAND", "ssh", "",
     ValueHint::kNone, false, true, "how to reach the hosts: run as COMMAND HOST WORDS",
     "Words are separated by blanks: \"ssh -p 2222 -i key\", \"qrsh -inherit\". It must pass standard input on."},
    {OptionId::kHostMember, OptionGroup::kNodes, kValue, kTprun, "host-member", 0, "FACTS", "", "", ValueHint::kNone,
     false, false, "which of the hosts this is: given by --hosts to what it starts, not by people", ""},
    {OptionId::kStdinLifeline, OptionGroup::kNodes, kFlag, kTprun, "stdin-lifeline", 0, "", "", "", ValueHint::kNone,
     false, false, "what --hosts starts on a host: not for people", ""},

    // ---- Look before you leap ------------------------------------------------------------------------------------
    {OptionId::kDryRun, OptionGroup::kInspect, kFlag, kTprun, "dry-run", 0, "", "", "", ValueHint::kNone, false, true,
     "print what would be run, and why, and run nothing", ""},
    {OptionId::kJson, OptionGroup::kInspect, kFlag, kTprun, "json", 0, "", "", "", ValueHint::kNone, false, true,
     "with --dry-run: as one JSON object", ""},
    {OptionId::kConfig, OptionGroup::kInspect, kValue, kTprun, "config", 0, "FILE", "", "", ValueHint::kFile, false,
     false, "take options from a TOML file; command line and environment win over it",
     "TPRUN_CONFIG names one too. configs/tprun.toml shows every key."},
    {OptionId::kPrintCompletion, OptionGroup::kInspect, kValue, kTorchrun, "print-completion", 0, "SHELL", "",
     "bash|zsh|fish|tcsh", ValueHint::kChoice, false, false, "print a completion script: eval \"$(tprun --print-completion bash)\"",
     ""},
    {OptionId::kVersion, OptionGroup::kInspect, kFlag, kTprun, "version", 0, "", "", "", ValueHint::kNone, false, false,
     "print the version", ""},
    {OptionId::kHelp, OptionGroup::kInspect, kFlag, kTorchrun, "help", 'h', "", "", "", ValueHint::kNone, false, false,
     "print this help", ""},
}};
// clang-format on

constexpr bool table_is_in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].id) != i) return false;
  }
  return true;
}
static_assert(table_is_in_order(), "an option's place in the table is its id");

bool is_same_name(std::string_view written, std::string_view name) {
  return written.size() == name.size() && std::equal(written.begin(), written.end(), name.begin(),
                                                     [](char a, char b) { return a == b || (a == '_' && b == '-'); });
}

}  // namespace

std::span<const OptionSpec, kOptionCount> option_table() {
  return kTable;
}

const OptionSpec& option_spec(OptionId id) {
  return kTable[static_cast<std::size_t>(id)];
}

std::string_view group_title(OptionGroup group) {
  switch (group) {
    case OptionGroup::kSize:
      return "How many, and where";
    case OptionGroup::kProgram:
      return "What is run";
    case OptionGroup::kFailure:
      return "When something fails or ends";
    case OptionGroup::kOutput:
      return "Output";
    case OptionGroup::kNodes:
      return "Many nodes (this release runs one; --dry-run shows what is read)";
    case OptionGroup::kInspect:
      return "Look before you leap";
  }
  return "";
}

const OptionSpec* find_option(std::string_view name) {
  for (const OptionSpec& spec : kTable) {
    if (is_same_name(name, spec.name)) return &spec;
  }
  return nullptr;
}

}  // namespace tensorplay::agent
