/// Completion scripts for shells, written from the option table. A core without I/O.
#pragma once

#include "agent/launch_plan.hpp"

#include <string>
#include <string_view>

namespace tensorplay::agent {

/// The script for "bash", "zsh", "fish" or "tcsh"; it completes the command of that front. Throws UsageError for
/// another shell.
std::string completion_script(std::string_view shell, Front front);

}  // namespace tensorplay::agent
