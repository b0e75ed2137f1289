/// What tprun's exit code means: the one table (docs/exit-codes.md shows it to people).
///
/// A worker's own code passes through unchanged, and a worker killed by signal N gives 128 + N. When tprun itself was
/// stopped by signal N it ends by that signal (as pid 1: exit code 128 + N).
#pragma once

namespace tensorplay::distributed::exit_code {

inline constexpr int kSuccess = 0;            ///< All workers ended well, and no stop signal came.
inline constexpr int kTorchrunFailure = 1;    ///< Any worker's failure, when called under the name torchrun.
inline constexpr int kUsage = 2;              ///< The command line, environment or configuration is wrong.
inline constexpr int kInternalError = 70;     ///< A fault of tprun itself, or its agent was killed.
inline constexpr int kRendezvousFailed = 75;  ///< The nodes did not find each other; worth a retry.
inline constexpr int kNoProgress = 93;        ///< --no-progress-limit was reached: do not queue the job again.
inline constexpr int kCannotExecute = 126;    ///< The program exists and cannot be executed.
inline constexpr int kProgramNotFound = 127;  ///< There is no such program.
inline constexpr int kSignalBase = 128;       ///< 128 + N: killed by signal N.

}  // namespace tensorplay::distributed::exit_code
