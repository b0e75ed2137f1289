/// --help and --version. Cores: they give text, main prints it.
#pragma once

#include "agent/launch_plan.hpp"

#include <string>

namespace tensorplay::agent {

/// Everything that can be said on the command line, in groups, with examples. `width` in columns; `colour` for a
/// terminal.
std::string help_text(Front front, int width, bool colour);

/// "tprun 0.1.0".
std::string version_text();

}  // namespace tensorplay::agent
