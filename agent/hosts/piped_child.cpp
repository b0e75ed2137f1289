#include "agent/hosts/piped_child.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <signal.h>
#include <system_error>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace tensorplay::agent {
namespace {

struct Pipe {
  base::UniqueFd read_end, write_end;
};

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(errno, "cannot make a pipe");
  return {base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

int PipedChild::reap() {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

PipedChild start_piped_child(const PipedChildRequest& request) {
  Pipe input = make_pipe(), output = make_pipe(), error = make_pipe(), failure = make_pipe();
  const base::UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto argv = pointers_to(request.words);
  const auto environment = request.environment ? pointers_to(*request.environment) : std::vector<char*>{};
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) fail(errno, "cannot start " + request.words.front());
  if (pid == 0) {
    // One thread only, and nothing but system calls until execve.
    ::setsid();
    if (request.death_signal != 0) {
      ::prctl(PR_SET_PDEATHSIG, request.death_signal, 0, 0, 0);
      if (::getppid() != parent) ::_exit(127);
    }
    ::dup2(request.has_input ? input.read_end.get() : nothing.get(), STDIN_FILENO);
    ::dup2(output.write_end.get(), STDOUT_FILENO);
    ::dup2(error.write_end.get(), STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (request.environment) environ = const_cast<char**>(environment.data());
    ::execvp(argv[0], argv.data());
    const int reason = errno;
    [[maybe_unused]] const ssize_t told = ::write(failure.write_end.get(), &reason, sizeof reason);
    ::_exit(127);
  }
  failure.write_end.reset();
  int reason = 0;
  if (::read(failure.read_end.get(), &reason, sizeof reason) == sizeof reason) {
    ::waitpid(pid, nullptr, 0);
    fail(reason, "cannot start " + request.words.front());
  }
  PipedChild child;
  child.pid = pid;
  child.end.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (request.has_input) child.standard_input = std::move(input.write_end);
  child.output = std::move(output.read_end);
  child.error = std::move(error.read_end);
  for (const int fd : {child.standard_input.get(), child.output.get(), child.error.get()}) {
    if (fd >= 0) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  return child;
}

}  // namespace tensorplay::agent
