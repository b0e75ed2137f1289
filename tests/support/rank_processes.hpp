/// Ranks as processes on this machine, forked: what threads of one process cannot show, such as a rank that is killed
/// or stopped.
#pragma once

#include "tensorplay/distributed.hpp"
#include "tests/support/temporary_directory.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <sys/wait.h>

namespace tensorplay::testing {

/// Forked processes, each with an ending that its parent reads: empty for those that ended well, an exception's text,
/// or "killed by signal N". Whoever is left when this ends is killed.
/// Make one where no thread of this process runs.
class RankProcesses {
 public:
  RankProcesses(int size, const std::function<void(int rank)>& body) {
    for (int rank = 0; rank < size; ++rank) start(rank, body);
  }
  ~RankProcesses() {
    for (auto& process : processes_) {
      if (process.pid > 0) {
        ::kill(process.pid, SIGKILL);
        ::waitpid(process.pid, nullptr, 0);
      }
      ::close(process.pipe);
    }
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  pid_t pid(int rank) const { return processes_[static_cast<std::size_t>(rank)].pid; }
  void kill(int rank, int signal) const { ::kill(pid(rank), signal); }

  /// Waits for the rank's end and returns it.
  std::string ending(int rank) {
    auto& process = processes_[static_cast<std::size_t>(rank)];
    std::string text;
    char buffer[4096];
    ssize_t count = 0;
    while ((count = ::read(process.pipe, buffer, sizeof buffer)) > 0 || (count < 0 && errno == EINTR)) {
      if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
    }
    int status = 0;
    ::waitpid(process.pid, &status, 0);
    process.pid = -1;
    if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
    return text;
  }

  std::vector<std::string> endings() {
    std::vector<std::string> all;
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) all.push_back(ending(static_cast<int>(rank)));
    return all;
  }

 private:
  struct Process {
    pid_t pid;
    int pipe;
  };

  void start(int rank, const std::function<void(int)>& body) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error(std::strerror(errno));
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error(std::strerror(errno));
    if (pid == 0) {
      ::close(ends[0]);
      std::string text;
      try {
        body(rank);
      } catch (const std::exception& error) {
        text = error.what();
        if (text.empty()) text = "?";
      }
      [[maybe_unused]] const auto written = ::write(ends[1], text.data(), text.size());
      ::_exit(text.empty() ? 0 : 1);
    }
    ::close(ends[1]);
    processes_.push_back({pid, ends[0]});
  }

  std::vector<Process> processes_;
};

/// The default group of a rank that is a process, met in a file.
inline void join_by_file(const std::string& path, int rank, int size, std::chrono::milliseconds timeout,
                         const std::string& backend = "gloo") {
  distributed::init_process_group(
      {.backend = backend, .init_method = "file://" + path, .timeout = timeout, .world_size = size, .rank = rank});
}

}  // namespace tensorplay::testing
