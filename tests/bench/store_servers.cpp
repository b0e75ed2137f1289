#include "tests/bench/store_servers.hpp"

#include "runtime/store/tcp_store_server.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace tensorplay::bench {

namespace {

constexpr const char* kTorchServer =
    "import os, sys, torch.distributed as d\n"
    "s = d.TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False)\n"
    "os.write(1, b'%d\\n' % s.port)\n"
    "os.read(0, 1)\n";

/// Starts `run` in a child whose descriptor 0 is a pipe from here and whose 1 is a pipe to here.
template <typename Run>
std::pair<pid_t, std::pair<int, int>> start(Run run) {
  int to_child[2];
  int from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(to_child[0], 0);
    ::dup2(from_child[1], 1);
    ::close(to_child[1]);
    run();
    ::_exit(1);
  }
  ::close(to_child[0]);
  ::close(from_child[1]);
  return {pid, {to_child[1], from_child[0]}};
}

std::uint16_t read_port(int fd) {
  std::string text;
  char byte = 0;
  while (::read(fd, &byte, 1) == 1 && byte != '\n') text += byte;
  ::close(fd);
  return static_cast<std::uint16_t>(std::strtoul(text.c_str(), nullptr, 10));
}

/// torch's server asks DNS for the name of every peer, on the thread that serves them all. Its benchmark is not to be
/// one of this machine's resolver: where we may, name service is reduced to files for this process.
void look_up_no_names() {
  char path[] = "/tmp/store_bench_XXXXXX";
  const int fd = ::mkstemp(path);
  const std::string_view text = "hosts: files\n";
  const bool is_done = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::unshare(CLONE_NEWNS) == 0 &&
                       ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount(path, "/etc/nsswitch.conf", nullptr, MS_BIND, nullptr) == 0;
  if (!is_done) std::fprintf(stderr, "torch's server may be slowed down by reverse DNS look-ups (not root)\n");
  ::unlink(path);
}

void pin_all_threads(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ::sched_setaffinity(std::atoi(task.path().filename().c_str()), sizeof set, &set);
  }
}

}  // namespace

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    throw std::runtime_error("this machine has no CPU " + std::to_string(cpu));
}

ServerProcess ServerProcess::ours(int cpu) {
  const auto [pid, pipes] = start([cpu] {
    store::TCPStoreServer server({});
    pin_all_threads(cpu);  // Only now: made on one CPU, it would take the client to be on the same one.
    ::dprintf(1, "%d\n", static_cast<int>(server.port()));
    char byte = 0;
    [[maybe_unused]] const auto n = ::read(0, &byte, 1);
    ::_exit(0);
  });
  return {pid, pipes.first, read_port(pipes.second), true};
}

std::optional<ServerProcess> ServerProcess::torch(int cpu) {
  const char* python = std::getenv("TP_TORCH_PYTHON");
  if (python == nullptr) {
    std::printf("torch's server is left out: TP_TORCH_PYTHON does not name a Python with torch\n");
    return std::nullopt;
  }
  const auto [pid, pipes] = start([python, cpu] {
    pin_to(cpu);
    look_up_no_names();
    ::execl(python, python, "-c", kTorchServer, static_cast<char*>(nullptr));
  });
  ServerProcess server(pid, pipes.first, read_port(pipes.second), false);
  if (server.port() != 0) return server;
  std::printf("torch's server is left out: %s could not start it\n", python);
  return std::nullopt;
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      control_(std::exchange(other.control_, -1)),
      port_(other.port_),
      is_ours_(other.is_ours_) {}

ServerProcess::~ServerProcess() {
  if (pid_ <= 0) return;
  ::close(control_);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

long ServerProcess::resident_kib() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmRSS:")) return std::strtol(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

double ServerProcess::cpu_seconds() const {
  double total = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
    std::ifstream file(task.path() / "schedstat");
    double nanoseconds = 0;
    file >> nanoseconds;
    total += nanoseconds * 1e-9;
  }
  return total;
}

}  // namespace tensorplay::bench
