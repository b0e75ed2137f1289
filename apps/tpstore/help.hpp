/// tpstore's own words about itself.
#pragma once

#include "apps/tpstore/arguments.hpp"

#include <string>

namespace tpstore {

/// What `tpstore --help` prints, or `tpstore COMMAND --help` for one command.
std::string help_text(const std::string& command);

}  // namespace tpstore
