/// Signals as readable events: blocked, and read from a descriptor with what is known of their sender.
#pragma once

#include "runtime/base/fd.hpp"

#include <optional>
#include <set>
#include <signal.h>
#include <vector>

namespace tensorplay::agent {

struct ReceivedSignal {
  int signal = 0;
  bool from_step_daemon = false;  ///< slurmstepd sent it: then every process of the step has got it.
};

/// Of `wanted`, those not ignored at tprun's entry: what was ignored stays so (nohup).
std::set<int> without_ignored(const std::vector<int>& wanted);

/// Blocks `signals` in the calling thread and those it makes from now on.
void block_signals(const std::set<int>& signals);

/// Thread rules: one thread. The signals must be blocked.
class SignalIntake {
 public:
  /// Throws std::system_error.
  explicit SignalIntake(const std::set<int>& signals);
  /// Readable when take() has something.
  int fd() const noexcept { return fd_.get(); }
  /// The next signal; nullopt when there is none now.
  std::optional<ReceivedSignal> take() const;

 private:
  base::UniqueFd fd_;
};

}  // namespace tensorplay::agent
