/// Names the limit behind "too many open files": the errno alone sends people looking at the wrong thing.
#pragma once

#include <string>
#include <string_view>

namespace tensorplay::agent {

/// `reason`, with the limit on open files and how to raise it when it speaks of EMFILE; else as it is.
std::string with_open_file_limit(std::string_view reason);

}  // namespace tensorplay::agent
