#include "agent/child_output.hpp"

#include "runtime/base/fd.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/wait.h>

namespace tensorplay::agent {
namespace {

constexpr std::size_t kMost = 1U << 20U;

int milliseconds_left(distributed::Deadline deadline) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count());
}

/// Reads until the other end is closed; false when the deadline passed first, or there was too much.
bool read_all(int fd, distributed::Deadline deadline, std::string& out) {
  std::array<char, 4096> block;
  for (;;) {
    pollfd wait{fd, POLLIN, 0};
    const int ready = ::poll(&wait, 1, milliseconds_left(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got == 0) return true;
    if (got < 0 || out.size() + static_cast<std::size_t>(got) > kMost) return false;
    out.append(block.data(), static_cast<std::size_t>(got));
  }
}

/// Whether the child has ended by itself: one may close its output and live on. `end` is its pidfd; none: it is gone.
bool wait_for_end(const base::UniqueFd& end, distributed::Deadline deadline) {
  pollfd wait{end.get(), POLLIN, 0};
  return !end || ::poll(&wait, 1, milliseconds_left(deadline)) == 1;
}

pid_t spawn(const std::vector<std::string>& words, int output) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int failure = ::posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return failure == 0 ? pid : -1;
}

}  // namespace

std::optional<std::string> output_of(const std::vector<std::string>& words, distributed::Deadline deadline) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const base::UniqueFd ours(ends[0]);
  base::UniqueFd theirs(ends[1]);
  const pid_t pid = spawn(words, theirs.get());
  if (pid < 0) return std::nullopt;
  theirs.reset();
  const base::UniqueFd end(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::string out;
  const bool is_whole = read_all(ours.get(), deadline, out) && wait_for_end(end, deadline);
  if (!is_whole && end) ::syscall(SYS_pidfd_send_signal, end.get(), SIGKILL, nullptr, 0);
  int status = 0;
  pid_t reaped = -1;
  do {
    reaped = ::waitpid(pid, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  // The agent reaps whatever child of its has ended: how this one did is then not known, but what it said is.
  const bool has_failed = reaped == pid && (!WIFEXITED(status) || WEXITSTATUS(status) != 0);
  if (!is_whole || has_failed) return std::nullopt;
  return out;
}

}  // namespace tensorplay::agent
