#include "agent/failure_report.hpp"

#include "agent/failure_table.hpp"
#include "agent/stderr_tail.hpp"
#include "agent/terminal_text.hpp"
#include "rendezvous/failure_judgement.hpp"
#include "rendezvous/failure_words.hpp"

#include <algorithm>
#include <csignal>

namespace tensorplay::agent {
namespace {

using rendezvous::WorkerFailure;

constexpr std::size_t kTracebackLines = 20;
constexpr std::size_t kEarlierAttempts = 5;

bool is_many_hosts(const RunReport& report) {
  const auto& failures = report.finish->failures;
  const bool in_failures = std::any_of(failures.begin(), failures.end(),
                                       [&](const WorkerFailure& f) { return f.host != failures.front().host; });
  return in_failures || (!report.attempts.empty() && report.attempts.back().group_world_size > 1);
}

/// A run id that a person chose names the job; a made-up one (a UUID, "none") does not.
bool says_something(const std::string& run_id) {
  const bool is_uuid = run_id.size() == 36 && std::count(run_id.begin(), run_id.end(), '-') == 4;
  return !run_id.empty() && run_id != "none" && !is_uuid;
}

std::string job_name(const RunReport& report) {
  if (says_something(report.run_id)) return report.run_id;
  const std::string name = report.program.substr(report.program.rfind('/') + 1);
  return name.empty() ? "the job" : name;
}

std::string when(const RunReport& report, const WorkerFailure& cause) {
  if (cause.is_startup_failure) return {};
  if (report.max_restarts == 0 && report.finish->restart_count == 0) {
    return ", " + duration_text(cause.runtime_seconds) + " after its start";
  }
  return ", " + duration_text(cause.runtime_seconds) + " into attempt " +
         std::to_string(report.finish->restart_count + 1) + " of " + std::to_string(report.max_restarts + 1);
}

void add_quote(std::string& out, const std::string& title, const std::vector<std::string>& lines,
               const ReportStyle& style) {
  out += "\n  " + title + "\n";
  for (const std::string& line : lines) {
    out += style.colour ? "    \x1b[2m|\x1b[0m " : "    | ";
    out += line;
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  }
}

bool contains_line(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

/// What the cause said of itself: its stderr, and its error file where that adds something.
void add_words(std::string& out, const RunReport& report, const ReportStyle& style) {
  const WorkerFailure& cause = *report.finish->root_cause;
  const std::string rank = "rank " + std::to_string(cause.rank) + "'s ";
  const auto message = quotable_lines(cause.message, kTracebackLines, false);
  const auto traceback = quotable_lines(cause.traceback, kTracebackLines, false);
  const bool is_on_stderr = !message.empty() && contains_line(cause.last_lines, message.front());
  if (!is_on_stderr && !cause.is_startup_failure) {
    // A traceback ends with the message as a rule; where it does not, the message stands below it.
    std::vector<std::string> lines = traceback;
    if (message.size() > 1 || !traceback.empty()) {
      if (message.empty() || !contains_line(traceback, message.front())) {
        lines.insert(lines.end(), message.begin(), message.end());
      }
      add_quote(out, rank + (traceback.empty() ? "error:" : "traceback, from its error file:"), lines, style);
    }
  }
  if (cause.last_lines.empty()) return;
  const auto& in_sight = report.ranks_in_sight;
  if (cause.host == report.host && std::find(in_sight.begin(), in_sight.end(), cause.rank) != in_sight.end()) {
    out += "\n  " + rank + "last lines on stderr are above\n";
  } else {
    add_quote(out, rank + "last lines on stderr:", cause.last_lines, style);
  }
}

std::string hint(const WorkerFailure& cause) {
  if (cause.out_of_memory) {
    return "the kernel's OOM killer took it: it needs a smaller batch, fewer processes on the node, or a larger limit";
  }
  if (cause.signal == SIGKILL) {
    return "tprun did not send this SIGKILL: somebody did, or a memory or time limit of the system around it";
  }
  if (cause.signal == SIGBUS) return "SIGBUS is what a full /dev/shm gives; df -h /dev/shm tells";
  if (cause.signal == 0 && cause.exit_code > 128 && cause.exit_code <= 128 + SIGRTMAX && !cause.is_startup_failure) {
    return "exit code " + std::to_string(cause.exit_code) + " is what a shell gives for a program that died of " +
           rendezvous::signal_name(cause.exit_code - 128);
  }
  return {};
}

void add_earlier_attempts(std::string& out, const RunReport& report, bool with_host) {
  std::vector<const AttemptRecord*> earlier;
  for (const AttemptRecord& attempt : report.attempts) {
    if (attempt.round < report.finish->round && !attempt.failures.empty()) earlier.push_back(&attempt);
  }
  if (earlier.empty()) return;
  out += "\n  earlier attempts:\n";
  const std::size_t skipped = earlier.size() > kEarlierAttempts ? earlier.size() - kEarlierAttempts : 0;
  if (skipped > 0) out += "    (" + std::to_string(skipped) + " more)\n";
  for (std::size_t i = skipped; i < earlier.size(); ++i) {
    const WorkerFailure& failure = earlier[i]->failures.front();
    out += "    " + std::to_string(earlier[i]->restart_count + 1) + ": " +
           rendezvous::describe_failure(failure, with_host) + " after " + duration_text(failure.runtime_seconds) + "\n";
  }
}

}  // namespace

std::string end_in_brief(const WorkerFailure& failure) {
  const auto kind = rendezvous::kind_of(failure);
  if (kind == rendezvous::FailureKind::kStartup) return "not started";
  if (kind == rendezvous::FailureKind::kStoppedByUs) {
    return failure.signal == SIGKILL ? "killed by tprun" : "stopped by tprun";
  }
  if (kind == rendezvous::FailureKind::kPeerLost && failure.followed_from >= 0) return "lost its peer";
  std::string text =
      failure.signal != 0 ? rendezvous::signal_name(failure.signal) : "exit code " + std::to_string(failure.exit_code);
  if (failure.dumped_core) text += " (core dumped)";
  if (failure.out_of_memory) text += " (out of memory)";
  return text;
}

std::string render_failure_report(const RunReport& report, const ReportStyle& style) {
  if (!report.finish || (!report.finish->root_cause && report.exit_code == 0)) return {};
  const std::string red = style.colour ? "\x1b[1;31m" : "";
  const std::string plain = style.colour ? "\x1b[0m" : "";
  std::string out = "tprun: " + job_name(report) + " " + red + "failed" + plain + ": ";
  const auto& cause = report.finish->root_cause;
  if (!cause) {
    out += report.finish->why.empty() ? "no worker says why" : report.finish->why;
    return out + "\n\n  exit code " + std::to_string(report.exit_code) + " (" + exit_code_owner(report) + ")\n";
  }
  const bool with_host = is_many_hosts(report);
  out += rendezvous::describe_failure(*cause, with_host) + when(report, *cause) + "\n\n";
  out += render_failure_table(*report.finish, {style, with_host});
  add_words(out, report, style);
  add_earlier_attempts(out, report, with_host);
  if (const std::string text = hint(*cause); !text.empty()) out += "\n  hint: " + text + "\n";
  if (!report.log_folder.empty()) out += "\n  logs: " + report.log_folder + "\n";
  out += "\n  exit code " + std::to_string(report.exit_code) + " (" + exit_code_owner(report) + ")\n";
  return out;
}

}  // namespace tensorplay::agent
