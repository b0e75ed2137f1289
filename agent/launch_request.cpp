#include "agent/launch_request.hpp"

#include "agent/command_line.hpp"
#include "agent/config_file.hpp"
#include "agent/device_count.hpp"
#include "agent/environment_settings.hpp"
#include "agent/near_miss.hpp"
#include "agent/numa.hpp"
#include "agent/option_values.hpp"
#include "agent/program_lookup.hpp"
#include "agent/rendezvous_plan.hpp"
#include "agent/scheduler/facts.hpp"
#include "agent/scheduler_choice.hpp"
#include "agent/usage_error.hpp"
#include "runtime/base/environment.hpp"

#include <limits>

namespace tensorplay::agent {
namespace {

namespace env = base::env;

/// The value of an option that knows only certain words; its default (or nothing) where it is not given.
std::string read_choice(const Settings& settings, OptionId id) {
  const OptionSpec& spec = option_spec(id);
  if (!settings.is_given(id)) return std::string(spec.fallback);
  const std::string value = settings.find(id)->value;
  const auto choices = split(spec.choices, '|');
  std::string listed;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == value) return value;
    listed += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + std::string(choices[i]);
  }
  const auto guess = near_miss(value, choices);
  throw UsageError(settings.quoted(id) + ": no such choice; " +
                   (guess ? "did you mean " + std::string(*guess) + "?" : "give " + listed));
}

class Planner {
 public:
  Planner(const LaunchInputs& inputs, Front front, const Settings& settings, std::vector<std::string> notes)
      : inputs_(inputs), settings_(settings) {
    plan_.front = front;
    plan_.notes = std::move(notes);
  }

  LaunchPlan make(const std::vector<std::string>& program) {
    const std::string scheduler = read_choice(settings_, OptionId::kScheduler);
    if (auto facts = choose_host_facts(settings_, around(), plan_)) {
      scheduler_ = std::move(*facts);
    } else {
      scheduler_ = choose_scheduler_facts(settings_, around(), scheduler);
    }
    read_size();
    plan_rendezvous(settings_, inputs_.machine, scheduler_, plan_);
    read_workers();
    read_failure();
    read_output();
    read_torchrun_only();
    if (program.empty()) {
      throw UsageError(std::string("no program given; say what to run: ") + front_name(plan_.front) +
                       " [options] PROGRAM [arguments], or see --help");
    }
    read_program(program);
    // The first host says it for all.
    if (scheduler_.name == "hosts" && scheduler_.node_index > 0) plan_.notes.clear();
    return std::move(plan_);
  }

 private:
  void read_size() {
    if (const Setting* nodes = settings_.find(OptionId::kNnodes)) {
      std::tie(plan_.min_nodes, plan_.max_nodes) = parse_node_range(settings_.quoted(OptionId::kNnodes), nodes->value);
    }
    fit_nodes_to_scheduler(settings_, scheduler_, plan_);
    plan_.role = settings_.value_or(OptionId::kRole, "default");
    plan_.virtual_local_rank = settings_.is_on(OptionId::kVirtualLocalRank);
    plan_.nproc_per_node =
        count_workers(settings_.value_or(OptionId::kNprocPerNode, std::to_string(scheduler_.workers_here.value_or(1))));
  }

  int count_workers(const std::string& text) const {
    const Machine& machine = inputs_.machine;
    const EnvironmentView& environment = inputs_.environment;
    constexpr long kMost = 100'000;
    if (const auto number = as_whole(text)) {
      const std::string where =
          settings_.is_given(OptionId::kNprocPerNode) ? settings_.quoted(OptionId::kNprocPerNode) : "";
      return static_cast<int>(parse_whole(where, text, 1, kMost, "a count"));
    }
    const auto cpus = [&] { return static_cast<int>(machine.allowed_cpus().size()); };
    if (text == "cpu") return cpus();
    std::vector<std::string> devices;
    if (text == "auto" || text == "gpu") {
      devices = visible_cuda_devices(environment, machine, plan_.virtual_local_rank);
      if (devices.empty()) devices = visible_hip_devices(environment, machine);
      if (devices.empty() && text == "auto") devices = visible_xpu_devices(environment, machine, false);
      if (devices.empty() && text == "auto") return cpus();
    } else if (text == "xpu") {
      devices = visible_xpu_devices(environment, machine, true);
    } else {
      throw UsageError(settings_.quoted(OptionId::kNprocPerNode) +
                       ": not a count; give a number, 'cpu', 'gpu', 'xpu' or 'auto'");
    }
    if (devices.empty()) {
      throw UsageError(settings_.quoted(OptionId::kNprocPerNode) + ": there is no " + (text == "xpu" ? "XPU" : "GPU") +
                       " to be seen here" + narrowing_variables() + "; give a number, 'cpu' or 'auto'");
    }
    return static_cast<int>(devices.size());
  }

  /// " (CUDA_VISIBLE_DEVICES is '')": what may have hidden the devices.
  std::string narrowing_variables() const {
    for (const char* name : {env::kCudaVisibleDevices, env::kHipVisibleDevices, env::kRocrVisibleDevices}) {
      if (const auto value = inputs_.environment.find(name)) {
        return std::string(" (") + name + " is '" + std::string(*value) + "')";
      }
    }
    return "";
  }

  void read_workers() {
    const std::string stdin_mode = read_choice(settings_, OptionId::kStdin);
    if (stdin_mode == "none") plan_.stdin_mode = StdinMode::kNone;
    if (stdin_mode == "0") plan_.stdin_mode = StdinMode::kFirst;
    if (stdin_mode == "all") plan_.stdin_mode = StdinMode::kAll;
    check_virtual_local_rank();
    const std::string binding = read_choice(settings_, OptionId::kNumaBinding);
    if (binding.empty()) return;
    plan_.numa_binding = binding == "node"        ? NumaBinding::kNode
                         : binding == "socket"    ? NumaBinding::kSocket
                         : binding == "exclusive" ? NumaBinding::kExclusive
                                                  : NumaBinding::kCoreComplex;
    plan_.worker_cpus =
        bind_workers(settings_.quoted(OptionId::kNumaBinding), plan_.numa_binding, plan_.nproc_per_node,
                     visible_devices(inputs_.environment, inputs_.machine, plan_.virtual_local_rank), inputs_.machine);
  }

  /// Every worker needs an entry of its own in the list of devices, where there is a list.
  void check_virtual_local_rank() const {
    if (!plan_.virtual_local_rank) return;
    const char* name =
        inputs_.environment.find(env::kHipVisibleDevices) ? env::kHipVisibleDevices : env::kCudaVisibleDevices;
    const auto list = inputs_.environment.find(name);
    if (!list) return;
    const std::size_t entries = visible_entries(*list).size();
    if (entries >= static_cast<std::size_t>(plan_.nproc_per_node)) return;
    throw UsageError("--virtual-local-rank: " + std::to_string(plan_.nproc_per_node) + " workers but " +
                     std::to_string(entries) + " entries in " + name + "=" + std::string(*list) +
                     "; give --nproc-per-node=" + std::to_string(entries) + " or list more devices");
  }

  void read_program(const std::vector<std::string>& words) {
    ProgramRequest request;
    request.words = words;
    request.is_module = settings_.is_on(OptionId::kModule);
    request.no_python = settings_.is_on(OptionId::kNoPython);
    request.run_path = settings_.is_on(OptionId::kRunPath);
    if (request.is_module && request.no_python && !request.run_path) {
      throw UsageError("--no-python: a module needs Python; drop it or --module");
    }
    const bool appends = plan_.front == Front::kTplaunch && !settings_.is_on(OptionId::kUseEnv);
    if (appends && request.no_python) {
      throw UsageError("--no-python: the program would be given --local-rank=N; give --use-env too");
    }
    if (request.run_path) {
      plan_.notes.push_back(settings_.find(OptionId::kRunPath)->place + ": " + words.front() +
                            " is run as a program, python " + words.front() + ", not as a function");
    }
    plan_.program = find_program(request, inputs_.environment, inputs_.machine);
    plan_.program.appends_local_rank = appends;
  }

  void read_failure() {
    if (const Setting* restarts = settings_.find(OptionId::kMaxRestarts)) {
      plan_.max_restarts = static_cast<int>(parse_whole(settings_.quoted(OptionId::kMaxRestarts), restarts->value, 0,
                                                        std::numeric_limits<int>::max(), "a count"));
    }
    read_restart_rules();
    plan_.leave_daemons = settings_.is_on(OptionId::kLeaveDaemons);
    plan_.signals_to_handle =
        settings_.value_or(OptionId::kSignalsToHandle, option_spec(OptionId::kSignalsToHandle).fallback);
    const Setting* signals = settings_.find(OptionId::kSignalsToHandle);
    plan_.stop_signals = parse_signals(signals != nullptr ? signals->place : "--signals-to-handle",
                                       plan_.signals_to_handle, plan_.notes);
    plan_.shutdown_timeout = find_shutdown_timeout();
  }

  void read_restart_rules() {
    if (const Setting* window = settings_.find(OptionId::kRestartWindow)) {
      const std::string where = settings_.quoted(OptionId::kRestartWindow);
      plan_.restart_window = parse_seconds(where, window->value, 0);
      if (plan_.restart_window->count() == 0) throw UsageError(where + ": must be above zero; give seconds");
    }
    if (const Setting* limit = settings_.find(OptionId::kNoProgressLimit)) {
      const std::string where = settings_.quoted(OptionId::kNoProgressLimit);
      const auto colon = limit->value.find(':');
      plan_.no_progress_limit = static_cast<int>(
          parse_whole(where, limit->value.substr(0, colon), 0, std::numeric_limits<int>::max(), "a count"));
      if (colon != std::string::npos) {
        plan_.progress_after = parse_seconds(where, limit->value.substr(colon + 1), 0);
      }
    }
  }

  std::chrono::milliseconds find_shutdown_timeout() const {
    constexpr std::chrono::milliseconds kUsual{30'000}, kMargin{5'000}, kLeast{1'000};
    const std::string scheduler = read_choice(settings_, OptionId::kScheduler);
    if (const Setting* timeout = settings_.find(OptionId::kShutdownTimeout)) {
      return parse_seconds(settings_.quoted(OptionId::kShutdownTimeout), timeout->value, 0);
    }
    if (const auto text = inputs_.environment.find_non_empty(env::kShutdownTimeout)) {
      return parse_seconds(std::string(env::kShutdownTimeout) + "=" + std::string(*text), *text, 0);
    }
    const auto kill_wait = find_kill_wait(around(), scheduler);
    if (!kill_wait) return kUsual;
    return std::max(*kill_wait - kMargin, kLeast);
  }

  void read_output() {
    LoggingPlan& logging = plan_.logging;
    logging.log_dir = settings_.value_or(OptionId::kLogDir, "");
    if (!logging.log_dir.empty() && logging.log_dir != "/dev/null") {
      const FileKind kind = inputs_.machine.kind_of(logging.log_dir);
      // One that cannot be reached is told when it is tried.
      if (kind != FileKind::kFolder && kind != FileKind::kMissing && kind != FileKind::kUnreachable) {
        throw UsageError(settings_.quoted(OptionId::kLogDir) + ": is not a folder; give one, or a name that is free");
      }
    }
    logging.redirects = read_streams(OptionId::kRedirects);
    logging.tee = read_streams(OptionId::kTee);
    logging.line_prefix_template = settings_.value_or(OptionId::kLogLinePrefixTemplate, "");
    if (logging.line_prefix_template.empty()) {
      logging.line_prefix_template = std::string(inputs_.environment.find(env::kLogLinePrefixTemplate).value_or(""));
    }
    if (const Setting* ranks = settings_.find(OptionId::kLocalRanksFilter)) {
      logging.local_ranks_filter = parse_ranks(settings_.quoted(OptionId::kLocalRanksFilter), ranks->value);
    }
    logging.duplicate_stdout_filters = parse_filters(settings_.value_or(OptionId::kDuplicateStdoutFilters, ""));
    logging.duplicate_stderr_filters = parse_filters(settings_.value_or(OptionId::kDuplicateStderrFilters, ""));
    plan_.report_file = settings_.value_or(OptionId::kReport, "");
  }

  StreamSelection read_streams(OptionId id) const {
    const Setting* streams = settings_.find(id);
    return streams != nullptr ? parse_streams(settings_.quoted(id), streams->value) : StreamSelection{};
  }

  /// Options and variables that mean something in torchrun only.
  void read_torchrun_only() {
    if (const Setting* specs = settings_.find(OptionId::kLogsSpecs); specs != nullptr && specs->value != "default") {
      throw UsageError(settings_.quoted(OptionId::kLogsSpecs) +
                       ": a Python plug-in, which tprun cannot load; give --log-dir, --redirects and --tee");
    }
    if (settings_.is_given(OptionId::kStartMethod)) {
      read_choice(settings_, OptionId::kStartMethod);
      accept(OptionId::kStartMethod, "workers are programs, not functions");
    }
    if (read_choice(settings_, OptionId::kEventLogHandler) != "null") {
      accept(OptionId::kEventLogHandler, "events are not written; --report writes how the job went");
    }
    if (const Setting* interval = settings_.find(OptionId::kMonitorInterval)) {
      const std::string where = settings_.quoted(OptionId::kMonitorInterval);
      if (parse_seconds(where, interval->value, 0).count() == 0 && as_whole(interval->value).value_or(1) == 0) {
        throw UsageError(where + ": must be above zero; give seconds");
      }
      accept(OptionId::kMonitorInterval, "tprun is told of a worker's end and never polls");
    }
    if (inputs_.environment.find(env::kEnableFileTimer).value_or("") == "1") {
      plan_.notes.push_back("TORCHELASTIC_ENABLE_FILE_TIMER=1: has no effect: tprun has no file timers");
    }
    // A static rendezvous on many nodes has one port, which the agents' store is at; torchrun shares it always.
    const bool must_share = plan_.max_nodes > 1 && plan_.rdzv.backend == "static";
    plan_.shares_agent_store = must_share || inputs_.environment.find(env::kDisableShareStore).value_or("") != "1";
  }

  void accept(OptionId id, const std::string& why) {
    plan_.notes.push_back(settings_.quoted(id) + ": accepted, but has no effect: " + why);
  }

  Surroundings around() const { return {inputs_.environment, inputs_.machine}; }

  const LaunchInputs& inputs_;
  const Settings& settings_;
  SchedulerFacts scheduler_;
  LaunchPlan plan_;
};

}  // namespace

Front front_of(const std::string& program_name) {
  const auto slash = program_name.rfind('/');
  const std::string name = slash == std::string::npos ? program_name : program_name.substr(slash + 1);
  if (name == "torchrun") return Front::kTorchrun;
  if (name == "tplaunch") return Front::kTplaunch;
  return Front::kTprun;
}

const char* front_name(Front front) {
  switch (front) {
    case Front::kTorchrun:
      return "torchrun";
    case Front::kTplaunch:
      return "tplaunch";
    case Front::kTprun:
      break;
  }
  return "tprun";
}

namespace {

/// Whether a word that was taken for a value is what somebody would run.
bool is_a_program(const std::string& word, const LaunchInputs& inputs) {
  if (word.empty()) return false;
  ProgramRequest request;
  request.words = {word};
  const ProgramPlan program = find_program(request, inputs.environment, inputs.machine);
  return program.startup_errno == 0 || word.ends_with(".py");
}

}  // namespace

LaunchRequest read_launch_request(const LaunchInputs& inputs) {
  const Front front = front_of(inputs.argv.empty() ? "tprun" : inputs.argv.front());
  const auto words = std::span(inputs.argv).subspan(inputs.argv.empty() ? 0 : 1);
  const CommandLine line = parse_command_line(words, front);
  LaunchRequest request;
  Settings settings = line.settings;
  if (settings.is_given(OptionId::kHelp)) return {Action::kHelp, "", {}};
  if (settings.is_given(OptionId::kVersion)) return {Action::kVersion, "", {}};
  if (settings.is_on(OptionId::kStdinLifeline)) return {Action::kRelay, "", {}};
  if (settings.is_given(OptionId::kPrintCompletion)) {
    return {Action::kPrintCompletion, read_choice(settings, OptionId::kPrintCompletion), {}};
  }

  std::vector<std::string> notes;
  read_environment_settings(inputs.environment, front, settings, notes);
  if (const Setting* config = settings.find(OptionId::kConfig); config != nullptr && !config->value.empty()) {
    read_config_file(settings.quoted(OptionId::kConfig), config->value, inputs.machine, settings);
  }
  if (settings.is_on(OptionId::kJson) && !settings.is_on(OptionId::kDryRun)) {
    throw UsageError("--json: belongs to --dry-run; give both");
  }
  if (settings.is_on(OptionId::kDryRun)) {
    request.action = settings.is_on(OptionId::kJson) ? Action::kDryRunJson : Action::kDryRun;
  }
  if (const auto& taken = line.last_taken; taken && is_a_program(taken->word, inputs)) {
    throw UsageError(took_the_program(option_spec(taken->option), taken->word));
  }
  request.plan = Planner(inputs, front, settings, std::move(notes)).make(line.program);
  return request;
}

}  // namespace tensorplay::agent
