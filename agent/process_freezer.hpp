/// Stops everything that descends from this process, and lets exactly that go on again: what Ctrl-Z and `fg` do to a
/// job whose workers lead sessions of their own, where a terminal cannot reach them. Thread rules: one thread.
#pragma once

#include "agent/process_tree.hpp"

#include <vector>

namespace tensorplay::agent {

class ProcessFreezer {
 public:
  /// SIGSTOP to every descendant that runs. No effect while some are frozen.
  void freeze_descendants();

  /// SIGCONT to those that freeze_descendants() stopped, and to nobody else.
  void thaw();

 private:
  std::vector<ProcessStat> frozen_;
};

}  // namespace tensorplay::agent
