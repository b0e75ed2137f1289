#include "agent/launch.hpp"

#include "agent/agent.hpp"
#include "agent/error_file.hpp"
#include "agent/failure_report.hpp"
#include "agent/guardian.hpp"
#include "agent/lone_meeting.hpp"
#include "agent/loss_declaration.hpp"
#include "agent/network_meeting.hpp"
#include "agent/open_file_limit.hpp"
#include "rendezvous/shared_secret.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/exit_codes.hpp"

#include <asio/io_context.hpp>

#include <exception>
#include <memory>
#include <optional>

namespace tensorplay::agent {
namespace {

namespace exit_code = distributed::exit_code;

/// What the guardian of a dead agent gives to telling the others.
constexpr std::chrono::milliseconds kDeclareLimit{2'000};

rendezvous::MembershipOptions membership_options(const LaunchPlan& plan) {
  rendezvous::MembershipOptions options;
  options.min_nodes = plan.min_nodes;
  options.max_nodes = plan.max_nodes;
  options.restarts.max_restarts = plan.max_restarts;
  options.restarts.window = plan.restart_window;
  options.restarts.no_progress_limit = plan.no_progress_limit;
  options.restarts.progress_after = plan.progress_after;
  options.join_timeout = plan.rdzv.join_timeout;
  options.last_call = plan.rdzv.last_call;
  options.replacement_wait = plan.rdzv.replacement_wait;
  options.expected_hosts = plan.rdzv.hosts;
  options.expects_node_ranks = plan.rdzv.backend == "static" && plan.max_nodes > 1;
  return options;
}

/// What a person chose to call the job; a name that tprun made up says nothing.
std::string job_name(const LaunchPlan& plan) {
  return plan.rdzv.run_id == "none" ? std::string() : plan.rdzv.run_id;
}

int exit_code_of(const EndAgent& end, const LaunchPlan& plan) {
  if (end.stop_signal != 0) return exit_code::kSignalBase + end.stop_signal;
  if (!end.order) return exit_code::kInternalError;
  const bool is_failure_of_workers = end.order->exit_code != 0 && end.order->root_cause;
  if (end.order->exit_code == exit_code::kNoProgress) return exit_code::kNoProgress;
  return plan.front == Front::kTorchrun && is_failure_of_workers ? exit_code::kTorchrunFailure : end.order->exit_code;
}

/// What people and programs are told at the end. A report that cannot be written changes no exit code.
void tell_the_end(const LaunchPlan& plan, const RunReport& report, Console& console) {
  const auto& finish = report.finish;
  if (finish && finish->exit_code != 0 && report.stop_signal == 0) {
    const auto text = render_failure_report(report, {.colour = console.wants_colour(), .width = console.width()});
    if (text.empty()) {
      console.say(finish->why);
    } else {
      console.print(text);
    }
  }
  const auto attempt_to_write = [&console](const auto& write) {
    try {
      write();
    } catch (const distributed::DistError& e) {
      console.say(e.what());
    }
  };
  if (!plan.report_file.empty()) attempt_to_write([&] { write_run_report(plan.report_file, report); });
  const auto parents_file = base::env_value(base::env::kErrorFile);
  if (parents_file && !parents_file->empty() && finish && finish->root_cause) {
    attempt_to_write([&] { write_parent_error_file(*parents_file, *finish->root_cause); });
  }
}

/// Log lines go through the console while it is there, so that they never land inside a worker's line.
class LogOnConsole {
 public:
  explicit LogOnConsole(Console& console) {
    base::log::Options options;
    options.program = "tprun";
    options.sink = [take = console.line_taker()](base::log::Level, std::string_view line) { take(line); };
    base::log::configure(std::move(options));
  }
  ~LogOnConsole() {
    base::log::Options options;
    options.program = "tprun";
    base::log::configure(std::move(options));
  }
  LogOnConsole(const LogOnConsole&) = delete;
  LogOnConsole& operator=(const LogOnConsole&) = delete;
};

std::unique_ptr<Meeting> make_meeting(asio::io_context& loop, const LaunchPlan& plan, GuardianLink& link,
                                      WorkersStore& store, WaitStatus& status, Console& console) {
  const auto say = [&console](const rendezvous::Note& note) { console.say(Chatter::kInfo, note.text); };
  const auto options = membership_options(plan);
  if (plan.max_nodes == 1) return std::make_unique<LoneMeeting>(loop, store.own_server(), options, say);
  return std::make_unique<NetworkMeeting>(loop, plan, link, store, status, options, say);
}

AgentResult run_agent(const LaunchPlan& plan, GuardianLink& link) {
  Console console;
  const LogOnConsole log_on_console(console);
  if (!plan.scheduler.empty() && !plan.says_scheduler) console.say(Chatter::kInfo, plan.scheduler);
  asio::io_context loop(1);
  std::optional<WorkersStore> store;
  try {
    store.emplace(plan);
  } catch (const distributed::SocketError& e) {
    const std::string reason = e.what();
    if (const auto named = with_open_file_limit(reason); named != reason) {
      console.say(named);
      return {.exit_code = exit_code::kInternalError};
    }
    const bool is_taken = reason.find("in use") != reason.npos;
    console.say("the workers' store: " + reason +
                (is_taken ? "; choose another --master-port, or none for any that is free"
                          : "; --master-addr is an address of this host"));
    return {.exit_code = exit_code::kRendezvousFailed};
  }
  WaitStatus status(loop, console, job_name(plan));
  const auto meeting = make_meeting(loop, plan, link, *store, status, console);
  auto agent = std::make_unique<Agent>(loop, plan, link, *meeting, *store, console, status);
  const auto end = agent->run();
  auto report = std::move(agent->report());
  agent.reset();  // what workers wrote stands before what is said about them
  report.exit_code = exit_code_of(end, plan);
  tell_the_end(plan, report, console);
  return {.exit_code = report.exit_code,
          .stop_signal = end.stop_signal,
          .leaves_daemons = plan.leave_daemons && report.exit_code == 0};
}

}  // namespace

int run_launch(const LaunchPlan& plan) {
  const auto declare = [&plan](const AgentLease& lease) {
    try {
      declare_lost(lease, rendezvous::make_authenticator(plan.rdzv.secret).get(),
                   distributed::Deadline::after(kDeclareLimit));
    } catch (const distributed::DistError& e) {
      base::log::info([&] { return std::string("the store's host was not told of the agent's death: ") + e.what(); });
    }
  };
  return run_guarded({plan.stop_signals, declare}, [&plan](GuardianLink& link) -> AgentResult {
    try {
      return run_agent(plan, link);
    } catch (const std::exception& e) {
      base::log::error(std::string("internal error: ") + with_open_file_limit(e.what()));
      return {.exit_code = exit_code::kInternalError};
    }
  });
}

}  // namespace tensorplay::agent
