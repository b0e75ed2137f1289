#include "agent/worker_process.hpp"

#include "agent/entry_state.hpp"
#include "agent/process_tree.hpp"
#include "tests/agent/spawned.hpp"
#include "tests/support/catch.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <signal.h>

#include <sys/resource.h>
#include <sys/stat.h>

using namespace tensorplay::agent;
using namespace tensorplay::agent::testing;

namespace {

int exit_code_of_failure(const std::string& program) {
  SpawnRequest request;
  request.argv = {program};
  try {
    spawn_worker(request);
  } catch (const StartupFailure& failure) {
    return failure.exit_code();
  }
  return 0;
}

/// A file in a folder of its own, gone at the end.
class ScratchFile {
 public:
  ScratchFile(const std::string& text, mode_t mode) {
    char folder[] = "/tmp/tp-worker-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/program";
    std::ofstream(path_) << text;
    chmod(path_.c_str(), mode);
  }
  ~ScratchFile() { std::filesystem::remove_all(folder_); }
  const std::string& path() const { return path_; }

 private:
  std::string folder_;
  std::string path_;
};

}  // namespace

TEST_CASE("a worker leads its own session and dies with its parent") {
  const std::string text = output_of(shell("cut -d' ' -f6 /proc/$$/stat; echo $$"));
  const auto newline = text.find('\n');
  REQUIRE(text.substr(0, newline + 1) == text.substr(newline + 1));
}

TEST_CASE("a worker starts with an empty signal mask and default dispositions") {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  signal(SIGPIPE, SIG_IGN);
  const std::string text = output_of(shell("grep -E 'SigBlk|SigIgn' /proc/self/status"));
  signal(SIGPIPE, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  REQUIRE(text == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_CASE("a spawn leaves the parent's own signal mask and dispositions alone") {
  signal(SIGUSR2, SIG_IGN);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  output_of(shell("true"));
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int number = 1; number < 32; ++number) REQUIRE(sigismember(&before, number) == sigismember(&after, number));
  struct sigaction action {};
  sigaction(SIGUSR2, nullptr, &action);
  REQUIRE(action.sa_handler == SIG_IGN);
  signal(SIGUSR2, SIG_DFL);
}

TEST_CASE("a worker gets the limit of open files tprun was started with") {
  raise_open_file_limit();
  rlimit raised{};
  getrlimit(RLIMIT_NOFILE, &raised);
  REQUIRE(raised.rlim_cur == raised.rlim_max);
  REQUIRE(output_of(shell("ulimit -Sn")) == std::to_string(entry_state().open_files.rlim_cur) + "\n");
}

TEST_CASE("no descriptor but its three reaches a worker") {
  const tensorplay::base::UniqueFd leaky(fcntl(0, F_DUPFD, 50));  // not closed on exec, as inherited ones are
  REQUIRE(output_of(shell("echo /proc/$$/fd/*")).find("/fd/" + std::to_string(leaky.get())) == std::string::npos);
}

TEST_CASE("streams may be given crosswise") {
  auto [reader, writer] = make_pipe();
  SpawnRequest request = shell("echo out; echo err >&2");
  const int saved_out = dup(1);
  const int saved_err = dup(2);
  auto [out_reader, out_writer] = make_pipe();
  auto [err_reader, err_writer] = make_pipe();
  dup2(out_writer.get(), 2);
  dup2(err_writer.get(), 1);
  request.stdout_fd = 2;
  request.stderr_fd = 1;
  const pid_t pid = spawn_worker(request);
  dup2(saved_out, 1);
  dup2(saved_err, 2);
  close(saved_out);
  close(saved_err);
  out_writer.reset();
  err_writer.reset();
  REQUIRE(read_all(out_reader) == "out\n");
  REQUIRE(read_all(err_reader) == "err\n");
  waitpid(pid, nullptr, 0);
}

TEST_CASE("stdin is empty unless one is given") {
  REQUIRE(output_of(shell("cat; echo end")) == "end\n");
}

TEST_CASE("affinity is set before the program runs, and what cannot be set is a start-up failure") {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  SpawnRequest request = shell("grep Cpus_allowed_list /proc/self/status");
  request.cpus.emplace();
  CPU_ZERO(&*request.cpus);
  CPU_SET(cpu, &*request.cpus);
  REQUIRE(output_of(request) == "Cpus_allowed_list:\t" + std::to_string(cpu) + "\n");
  CPU_ZERO(&*request.cpus);
  REQUIRE_THROWS_AS(spawn_worker(request), StartupFailure);
}

TEST_CASE("exec errors come back at once with a shell's exit code, and leave no child") {
  REQUIRE(exit_code_of_failure("/no/such/program") == 127);
  REQUIRE(exit_code_of_failure("/etc/passwd/below-a-file") == 127);
  REQUIRE(exit_code_of_failure("/tmp") == 126);
  REQUIRE(exit_code_of_failure(ScratchFile("#!/bin/sh\n", 0644).path()) == 126);
  REQUIRE(exit_code_of_failure(ScratchFile("no interpreter line", 0755).path()) == 126);
  REQUIRE_FALSE(has_children());
}

TEST_CASE("a missing interpreter is not called a missing program") {
  const ScratchFile script("#!/no/such/interpreter\n", 0755);
  SpawnRequest request;
  request.argv = {script.path()};
  try {
    spawn_worker(request);
    FAIL("it started");
  } catch (const StartupFailure& failure) {
    REQUIRE(failure.exit_code() == 126);
    REQUIRE(std::string(failure.what()).find("interpreter") != std::string::npos);
  }
}
