// tprun: reads what is wanted, and has it done. The thinking is in agent/.
#include "agent/completion.hpp"
#include "agent/discovery_options.hpp"
#include "agent/dry_run.hpp"
#include "agent/error_file.hpp"
#include "agent/help.hpp"
#include "agent/hosts/host_run.hpp"
#include "agent/hosts/relay.hpp"
#include "agent/launch.hpp"
#include "agent/launch_request.hpp"
#include "agent/open_file_limit.hpp"
#include "agent/output_places.hpp"
#include "agent/run_report.hpp"
#include "agent/standard_streams.hpp"
#include "agent/this_machine.hpp"
#include "agent/unstartable.hpp"
#include "agent/usage_error.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/host.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/exit_codes.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <string>
#include <unistd.h>

#include <sys/ioctl.h>

namespace {

namespace agent = tensorplay::agent;
namespace exit_code = tensorplay::distributed::exit_code;

/// One line on stderr, in one write.
void say(const std::string& text) {
  const std::string line = "tprun: " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

/// What was asked for goes to stdout; a full disk or a closed pipe is not success.
int print(const std::string& text) {
  const bool worked = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (worked) return exit_code::kSuccess;
  say("standard output cannot be written");
  return exit_code::kInternalError;
}

int print_help(agent::Front front) {
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  winsize size{};
  const int width =
      is_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
  const char* no_colour = std::getenv(tensorplay::base::env::kNoColor);
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string(terminal) == "dumb";
  return print(agent::help_text(front, width, is_terminal && !is_dumb && (no_colour == nullptr || *no_colour == '\0')));
}

/// The program cannot be started: says so to people, to --report and to the launcher above, as for any failed run.
int refuse(const agent::LaunchPlan& plan) {
  const agent::RunReport report =
      agent::report_unstartable(plan, tensorplay::base::short_host_name(), static_cast<double>(std::time(nullptr)));
  say(report.finish->why);
  try {
    if (!plan.report_file.empty()) agent::write_run_report(plan.report_file, report);
    const char* parents_file = std::getenv(tensorplay::base::env::kErrorFile);
    if (parents_file != nullptr && *parents_file != '\0') {
      agent::write_parent_error_file(parents_file, *report.finish->root_cause);
    }
  } catch (const tensorplay::distributed::DistError& error) {
    say(error.what());
  }
  return report.exit_code;
}

int launch(const agent::LaunchPlan& plan) {
  if (plan.says_scheduler) say(plan.scheduler);
  for (const std::string& note : plan.notes) say(note);
  if (plan.program.startup_errno != 0) return refuse(plan);
  agent::check_output_places(plan);
  return agent::run_launch(plan);
}

/// Where tprun lies, under the name it was called by: the name decides what it does.
std::string own_path(const agent::Machine& machine, const std::string& called_as) {
  const std::filesystem::path name = std::filesystem::path(called_as).filename();
  return (std::filesystem::absolute(machine.own_folders().front()) / name).lexically_normal().string();
}

int run(int argc, char** argv) {
  const std::string called_as = argc > 0 ? argv[0] : "tprun";
  const agent::ThisMachine machine(called_as);
  const agent::EnvironmentView environment(environ);
  agent::LaunchRequest request =
      agent::read_launch_request({std::vector<std::string>(argv, argv + argc), environment, machine});
  switch (request.action) {
    case agent::Action::kHelp:
      return print_help(agent::front_of(called_as));
    case agent::Action::kVersion:
      return print(agent::version_text() + "\n");
    case agent::Action::kPrintCompletion:
      return print(agent::completion_script(request.shell, agent::front_of(called_as)));
    case agent::Action::kRelay:
      return agent::run_relay();
    case agent::Action::kDryRun:
      return print(agent::dry_run_text(request.plan, environment));
    case agent::Action::kDryRunJson:
      return print(agent::dry_run_json(request.plan, environment));
    case agent::Action::kLaunch:
      break;
  }
  if (!request.plan.hosts.empty()) {
    std::vector<std::string> words(argv, argv + argc);
    words.front() = own_path(machine, called_as);
    return agent::run_on_hosts(request.plan, words);
  }
  agent::load_secret(environment, request.plan.rdzv);
  return launch(request.plan);
}

}  // namespace

int main(int argc, char** argv) {
  agent::hold_standard_streams();
  try {
    return run(argc, argv);
  } catch (const agent::RepeatedUsageError&) {
    return exit_code::kUsage;
  } catch (const agent::UsageError& error) {
    say(error.what());
    return exit_code::kUsage;
  } catch (const std::exception& error) {
    say(std::string("internal error: ") + agent::with_open_file_limit(error.what()));
    return exit_code::kInternalError;
  }
}
