/// A child process with its three streams on pipes, in a session of its own: no terminal signals it.
#pragma once

#include "runtime/base/fd.hpp"

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tensorplay::agent {

struct PipedChild {
  pid_t pid = -1;
  base::UniqueFd end;  ///< A pidfd: readable once the child has ended.
  base::UniqueFd standard_input;
  base::UniqueFd output;
  base::UniqueFd error;

  /// Its exit code, or 128 + N for signal N. Call once, after `end` is readable; reaps it.
  int reap();
};

struct PipedChildRequest {
  std::vector<std::string> words;                       ///< words[0] is looked for in PATH.
  std::optional<std::vector<std::string>> environment;  ///< nullopt: inherited.
  bool has_input = true;                                ///< Else its standard input is /dev/null.
  int death_signal = 0;                                 ///< Sent to it when this thread ends; 0: none.
};

/// Throws std::system_error when it cannot be started.
PipedChild start_piped_child(const PipedChildRequest& request);

}  // namespace tensorplay::agent
