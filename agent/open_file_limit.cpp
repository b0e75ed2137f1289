#include "agent/open_file_limit.hpp"

#include <cerrno>
#include <cstring>

#include <sys/resource.h>

namespace tensorplay::agent {

std::string with_open_file_limit(std::string_view reason) {
  std::string text(reason);
  // Without its first letter, which some messages write small.
  const std::string_view sign = std::string_view(std::strerror(EMFILE)).substr(1);
  rlimit limit{};
  if (text.find(sign) == std::string::npos || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return text;
  // tprun has raised the soft limit as far as it may.
  return text + "; the limit is " + std::to_string(limit.rlim_cur) + " (ulimit -Hn), raise it or start fewer workers";
}

}  // namespace tensorplay::agent
