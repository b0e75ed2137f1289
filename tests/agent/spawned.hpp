/// What tests of real workers share: a request for a shell line, and what the line printed.
#pragma once

#include "agent/worker_process.hpp"
#include "runtime/base/fd.hpp"

#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>

#include <sys/wait.h>

namespace tensorplay::agent::testing {

inline SpawnRequest shell(const std::string& line) {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", line};
  request.environment = {"PATH=/usr/bin:/bin"};
  return request;
}

/// Read end, write end; both closed on exec.
inline std::pair<base::UniqueFd, base::UniqueFd> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  return {base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

/// Everything until the end of the stream.
inline std::string read_all(const base::UniqueFd& from) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(from.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

/// Runs `request` to its end and returns what it wrote to stdout.
inline std::string output_of(SpawnRequest request) {
  auto [reader, writer] = make_pipe();
  request.stdout_fd = writer.get();
  const pid_t pid = spawn_worker(request);
  writer.reset();
  std::string text = read_all(reader);
  waitpid(pid, nullptr, 0);
  return text;
}

}  // namespace tensorplay::agent::testing
