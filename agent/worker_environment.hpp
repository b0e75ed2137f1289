/// What one worker is started with: its words and its whole environment. A core without I/O: the same plan, order and
/// base environment give the same answer.
#pragma once

#include "agent/environment_view.hpp"
#include "agent/launch_plan.hpp"
#include "rendezvous/messages.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::agent {

/// What tprun adds to or changes in the environment it was started with, by name. `order` is what the rendezvous
/// decided; without one (--dry-run) only what is known before it is given. `error_file` is empty when there is none:
/// the variable is set all the same, so that no worker writes to the file of an outer launcher.
std::map<std::string, std::string> worker_additions(const LaunchPlan& plan, const rendezvous::StartOrder* order,
                                                    int local_rank, const EnvironmentView& base,
                                                    const std::optional<std::string>& error_file);

/// The worker's whole environment, "NAME=value" each: `base` with the additions in the place of what they replace.
std::vector<std::string> worker_environment(const LaunchPlan& plan, const rendezvous::StartOrder& order, int local_rank,
                                            const EnvironmentView& base, const std::string& error_file);

/// The worker's words; the first is the file to execute. In every other word ${local_rank} and $local_rank become the
/// local rank, and with a second dollar sign before them ($${local_rank}) they stand for themselves. Other text with a
/// dollar sign stays as it is, `$$` too.
std::vector<std::string> worker_argv(const LaunchPlan& plan, int local_rank);

/// The substitution alone.
std::string substitute_local_rank(std::string_view word, int local_rank);

}  // namespace tensorplay::agent
