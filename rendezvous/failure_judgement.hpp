/// Which of the failures of a world was the cause, and which only followed. Pure: from the reports alone.
///
/// The rules, strongest first:
///  1. A worker that could not be started at all is the cause.
///  2. A failure of its own (a signal not ours, an OOM kill, an error that is not about a peer) is the cause before any
///     other; among several the earliest, by the time of the throw where an error file tells it, else by the end.
///     Victims often end first: their sockets close while the culprit still frees its memory.
///  3. An error about a peer (connection closed, broken pipe, a collective that timed out) comes next:
///     it is the cause only when there is nothing better.
///  4. What ended after our own signal comes last, unless it had told its own error before we stopped it: a culprit
///     that still unwinds when its first victim has ended is stopped like everybody.
#pragma once

#include "rendezvous/messages.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::rendezvous {

/// What a failure speaks for.
enum class FailureKind {
  kStartup,      ///< Never ran.
  kOwn,          ///< Its own fault, as far as anybody can tell.
  kPeerLost,     ///< It lost a peer: a victim, if there is a cause at all.
  kStoppedByUs,  ///< Ended because we stopped it.
};

FailureKind kind_of(const WorkerFailure& failure);

struct Verdict {
  std::optional<WorkerFailure> root_cause;
  /// All, root cause first, then by time; `followed_from` is set on the victims.
  std::vector<WorkerFailure> failures;
  /// The root cause is a failure of its own: not only victims of something outside these reports.
  bool is_own = false;
};

/// Judges all failures of one round of the world. Empty in, empty out.
Verdict judge(std::vector<WorkerFailure> failures);

/// Whether an error text speaks of a lost peer: "Connection closed by peer", "Broken pipe", ncclRemoteError, ...
bool speaks_of_lost_peer(const std::string& text);

/// Whether it had failed by itself and our stop signal overtook it: then its signal says nothing about it.
bool was_overtaken(const WorkerFailure& failure);

/// "died of SIGSEGV (core dumped)", "ended with exit code 7", "was killed for lack of memory (SIGKILL)", "could not be
/// started".
std::string describe_end(const WorkerFailure& failure);

/// What tprun's exit code becomes for it: its own, or 128 + its signal; 1 for one that had failed by itself when our
/// stop signal ended it.
int exit_code_of(const WorkerFailure& failure);

/// "SIGTERM"; "signal 40" for those without a name.
std::string signal_name(int signal);

}  // namespace tensorplay::rendezvous
