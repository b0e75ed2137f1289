#include "agent/process_freezer.hpp"

#include <signal.h>
#include <unistd.h>

namespace tensorplay::agent {

void ProcessFreezer::freeze_descendants() {
  if (!frozen_.empty()) return;
  // Parents come first, so that none sees its child stop and starts another.
  for (const pid_t pid : descendants_of(getpid())) {
    const auto stat = read_process_stat(pid);
    if (!stat || stat->state == 'T' || stat->state == 'Z') continue;
    if (kill(pid, SIGSTOP) == 0) frozen_.push_back(*stat);
  }
}

void ProcessFreezer::thaw() {
  for (const ProcessStat& process : frozen_) {
    const auto stat = read_process_stat(process.pid);
    if (stat && stat->start_ticks == process.start_ticks) kill(process.pid, SIGCONT);
  }
  frozen_.clear();
}

}  // namespace tensorplay::agent
