#include "agent/entry_state.hpp"

#include "runtime/base/fd.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace tensorplay::agent {

namespace {

constexpr const char* kScoreFile = "/proc/self/oom_score_adj";
constexpr int kScoreShift = 500;
constexpr int kLowestScore = -999;  // -1000 would exempt us wholly, and then nothing could end a runaway launcher

std::optional<int> changed_score;

EntryState capture() {
  EntryState state;
  for (int signal = 1; signal < 65; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) continue;
    if (action.sa_handler == SIG_IGN) state.ignored_signals.set(static_cast<std::size_t>(signal));
  }
  if (state.ignored_signals.test(SIGCHLD)) {
    state.ignored_signals.reset(SIGCHLD);
    struct sigaction action {};
    action.sa_handler = SIG_DFL;  // ignored, it would make the kernel reap our children unseen
    sigaction(SIGCHLD, &action, nullptr);
  }
  getrlimit(RLIMIT_NOFILE, &state.open_files);
  return state;
}

/// The first 16 KiB.
std::string read_small_file(const char* path) {
  const base::UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  std::string text(16'384, '\0');
  const ssize_t got = file ? read(file.get(), text.data(), text.size()) : -1;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace

const EntryState& entry_state() {
  static const EntryState state = capture();
  return state;
}

const std::string& own_cgroups() {
  static const std::string text = read_small_file("/proc/self/cgroup");
  return text;
}

void raise_open_file_limit() {
  rlimit limit = entry_state().open_files;
  if (limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

bool become_worse_oom_victim() {
  if (changed_score) return true;
  const base::UniqueFd file(open(kScoreFile, O_RDWR | O_CLOEXEC));
  char text[16] = {};
  if (!file || read(file.get(), text, sizeof text - 1) <= 0) return false;
  const int original = std::atoi(text);
  const int wanted = std::max(original - kScoreShift, kLowestScore);
  if (wanted >= original) return false;
  const int length = std::snprintf(text, sizeof text, "%d", wanted);
  if (pwrite(file.get(), text, static_cast<std::size_t>(length), 0) != length) return false;
  changed_score = original;
  return true;
}

std::optional<int> original_oom_score() {
  return changed_score;
}

}  // namespace tensorplay::agent
