/// The manual page of tprun, written from the option table. docs/man/tprun.1 is its output; a test keeps them alike.
#pragma once

#include <string>

namespace tensorplay::agent {

/// The page in man(7) markup.
std::string man_page();

}  // namespace tensorplay::agent
