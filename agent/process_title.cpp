#include "agent/process_title.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <unistd.h>

#include <sys/prctl.h>

namespace tensorplay::agent {

namespace {

/// The kernel lays out the words of argv one after the other, and the environment behind them.
std::size_t size_of_argv(const char* first) {
  constexpr std::ptrdiff_t kLongestCommandLine = 6 << 20;
  const std::size_t first_word = std::strlen(first) + 1;
  if (environ == nullptr || *environ == nullptr) return first_word;
  const std::ptrdiff_t until_environment = *environ - first;
  const bool is_behind = until_environment > 0 && until_environment <= kLongestCommandLine && (*environ)[-1] == '\0';
  return is_behind ? static_cast<std::size_t>(until_environment) : first_word;
}

}  // namespace

void set_process_title(const char* name) {
  prctl(PR_SET_NAME, name, 0, 0, 0);
  char* first = program_invocation_name;
  const std::size_t size = size_of_argv(first);
  const std::size_t shown = std::min(std::strlen(name), size - 1);
  std::memcpy(first, name, shown);
  std::memset(first + shown, 0, size - shown);
}

}  // namespace tensorplay::agent
