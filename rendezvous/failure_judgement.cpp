#include "rendezvous/failure_judgement.hpp"

#include "tensorplay/distributed/exit_codes.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <cstring>
#include <string_view>

namespace tensorplay::rendezvous {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool is_crash(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
    case SIGXCPU:
    case SIGXFSZ:
      return true;
    default:
      return false;
  }
}

/// A line that names an error: "ValueError: x", "torch.distributed.DistBackendError: x", "  what():  x".
bool names_an_error(std::string_view line) {
  if (line.substr(0, 5) == "[rank") {  // torch puts "[rank2]: " before each line of an uncaught exception
    const auto end = line.find("]: ");
    if (end != line.npos) line.remove_prefix(end + 3);
  }
  if (line.find("what():") != std::string_view::npos) return true;
  const auto end = line.find_first_of(": ");
  const auto name = line.substr(0, end);
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name.front()))) return false;
  const auto ends_in = [&](std::string_view ending) {
    return name.size() >= ending.size() && name.substr(name.size() - ending.size()) == ending;
  };
  return ends_in("Error") || ends_in("Exception") || ends_in("Interrupt") || ends_in("SystemExit");
}

/// What a worker says went wrong: its error file's message, else its last lines from the last that names an error on.
/// `is_error` tells whether an error is named, or these are just its last lines.
struct Words {
  std::string text;
  bool is_error = false;
};

Words words_of(const WorkerFailure& failure) {
  if (!failure.message.empty()) return {failure.message, true};
  const auto& lines = failure.last_lines;
  const auto last = std::find_if(lines.rbegin(), lines.rend(), names_an_error);
  Words words;
  words.is_error = last != lines.rend();
  for (auto it = words.is_error ? last.base() - 1 : lines.begin(); it != lines.end(); ++it) words.text += *it + "\n";
  return words;
}

/// An error that our stop signal itself raises in a Python worker.
bool speaks_of_our_stop(const std::string& text) {
  const auto low = lower(text);
  for (const auto* sign : {"keyboardinterrupt", "signalexception", "systemexit", "sigterm", "sigint", "got signal"}) {
    if (low.find(sign) != std::string::npos) return true;
  }
  return false;
}

double time_of(const WorkerFailure& failure) {
  return failure.thrown_at.value_or(failure.ended_at);
}

/// The strength of a claim to be the cause; the smallest wins.
int weight(FailureKind kind) {
  return static_cast<int>(kind);
}

}  // namespace

bool speaks_of_lost_peer(const std::string& text) {
  static constexpr std::array kSigns = {
      "connection closed",
      "connection was closed",
      "connection reset",
      "connection refused",
      "closed by peer",
      "broken pipe",
      "socket closed",
      "connection lost",
      "peer is gone",
      "remote end closed",
      "remote process",
      "ncclremoteerror",
      "remote error",
      "failed to recv, got 0 bytes",
      "connectfullmesh",
      "lost connection",
      "unexpected eof",
      "communicator was aborted",
      "nccl communicator",
      "watchdog caught",
      "collective operation timeout",
      "timed out waiting",
      "timed out after",
      "connect timeout",
      "rank is gone",
  };
  const auto low = lower(text);
  return std::any_of(kSigns.begin(), kSigns.end(), [&](const char* sign) { return low.find(sign) != low.npos; });
}

FailureKind kind_of(const WorkerFailure& failure) {
  if (failure.is_startup_failure) return FailureKind::kStartup;
  const auto words = words_of(failure);
  const bool lost_peer = speaks_of_lost_peer(words.text);
  if (failure.stopped_by_us) {
    // It may have been dying by its own error when our signal came: then it has said so, or it crashed.
    if (is_crash(failure.signal) && failure.signal != SIGABRT) return FailureKind::kOwn;
    if (!words.is_error || speaks_of_our_stop(words.text)) return FailureKind::kStoppedByUs;
    return lost_peer ? FailureKind::kPeerLost : FailureKind::kOwn;
  }
  if (failure.out_of_memory) return FailureKind::kOwn;
  if (failure.signal == SIGPIPE) return FailureKind::kPeerLost;
  // An uncaught C++ exception ends in SIGABRT: its text counts. Other signals need no words.
  if (failure.signal != 0 && failure.signal != SIGABRT) return FailureKind::kOwn;
  return lost_peer ? FailureKind::kPeerLost : FailureKind::kOwn;
}

Verdict judge(std::vector<WorkerFailure> failures) {
  Verdict verdict;
  if (failures.empty()) return verdict;
  struct Claim {
    FailureKind kind;
    WorkerFailure failure;
  };
  std::vector<Claim> claims;
  claims.reserve(failures.size());
  for (auto& failure : failures) {
    failure.followed_from = -1;
    const auto kind = kind_of(failure);
    claims.push_back({kind, std::move(failure)});
  }
  std::stable_sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
    if (weight(a.kind) != weight(b.kind)) return weight(a.kind) < weight(b.kind);
    if (time_of(a.failure) != time_of(b.failure)) return time_of(a.failure) < time_of(b.failure);
    return a.failure.rank < b.failure.rank;
  });
  verdict.is_own = claims.front().kind != FailureKind::kPeerLost && claims.front().kind != FailureKind::kStoppedByUs;
  const int root = claims.front().failure.rank;
  std::sort(claims.begin() + 1, claims.end(), [](const Claim& a, const Claim& b) {
    if (time_of(a.failure) != time_of(b.failure)) return time_of(a.failure) < time_of(b.failure);
    return a.failure.rank < b.failure.rank;
  });
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (i > 0 && claims[i].kind == FailureKind::kPeerLost) claims[i].failure.followed_from = root;
    verdict.failures.push_back(std::move(claims[i].failure));
  }
  verdict.root_cause = verdict.failures.front();
  return verdict;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

bool was_overtaken(const WorkerFailure& failure) {
  return failure.stopped_by_us && failure.signal != 0 && !is_crash(failure.signal) &&
         kind_of(failure) == FailureKind::kOwn;
}

std::string describe_end(const WorkerFailure& failure) {
  if (was_overtaken(failure)) return "failed, and was stopped before it had ended";
  if (failure.is_startup_failure) return "could not be started";
  if (failure.out_of_memory && failure.signal == SIGKILL) return "was killed for lack of memory (SIGKILL)";
  auto end = failure.signal != 0 ? "died of " + signal_name(failure.signal)
                                 : "ended with exit code " + std::to_string(failure.exit_code);
  if (failure.dumped_core) end += " (core dumped)";
  return failure.out_of_memory ? end + " after a child of it was killed for lack of memory" : end;
}

int exit_code_of(const WorkerFailure& failure) {
  if (was_overtaken(failure)) return 1;
  return failure.signal != 0 ? distributed::exit_code::kSignalBase + failure.signal : failure.exit_code;
}

}  // namespace tensorplay::rendezvous
