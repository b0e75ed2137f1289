/// Runs a short command for its output. Not for workers: those are spawned by worker_process.hpp.
#pragma once

#include "tensorplay/distributed/deadline.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tensorplay::agent {

/// What `words` print on stdout, at most 1 MiB; words[0] is looked for in PATH, no shell is involved. Its stdin and
/// stderr are /dev/null. nullopt when it cannot be run, fails, or has not ended by the deadline: then it is killed.
/// Blocks; any thread.
std::optional<std::string> output_of(const std::vector<std::string>& words, distributed::Deadline deadline);

}  // namespace tensorplay::agent
