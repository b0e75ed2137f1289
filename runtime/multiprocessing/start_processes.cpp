#include "runtime/base/fd.hpp"
#include "runtime/base/log.hpp"
#include "runtime/multiprocessing/call_file.hpp"
#include "runtime/multiprocessing/children.hpp"
#include "runtime/multiprocessing/entry.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/multiprocessing.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <spawn.h>
#include <system_error>
#include <unistd.h>

extern char** environ;

namespace tensorplay::multiprocessing {

struct ProcessContext::State {
  State(int count, Children::Start start) : children(count, std::move(start)) {}
  Children children;
};

namespace {

using distributed::InvalidArgument;

/// This process's command line, so that ps shows children like their parent.
std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (words.empty()) words.emplace_back("child");
  return words;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (auto& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

sigset_t current_mask() {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return mask;
}

/// Runs this program again; `mask` is the signal mask of whoever asked.
int spawn_one(WrittenCall written, int index, int error_fd, const sigset_t& mask) {
  written.index = index;
  written.parent = ::getpid();
  const base::UniqueFd call_file(make_memory_file("tp-spawn-call", write_call(written)));
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  variables.push_back(std::string(kCallVariable) + "=" + std::to_string(call_file.get()) + ":" +
                      std::to_string(error_fd));
  auto words = command_line();

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, call_file.get(), call_file.get());  // Takes close-on-exec away.
  ::posix_spawn_file_actions_adddup2(&actions, error_fd, error_fd);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int pid = -1;
  const int error =
      ::posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, pointers(words).data(), pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), "multiprocessing: starting this program");
  return pid;
}

int fork_one(const std::function<void(int)>& function, int index, int error_fd, bool daemon, const sigset_t& mask) {
  const int parent = ::getpid();
  const int pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "multiprocessing: fork");
  if (pid > 0) return pid;
  die_with(parent);
  set_daemon(daemon);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  const int code = run_and_tell(error_fd, [&] { function(index); });
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(code);  // What runs at exit is the parent's.
}

ProcessContextPtr start(const SpawnOptions& options, Children::Start start_one) {
  if (is_daemon()) throw InvalidArgument("daemonic processes are not allowed to have children");
  auto context =
      std::make_unique<ProcessContext>(std::make_unique<ProcessContext::State>(options.nprocs, std::move(start_one)));
  if (!options.join) return context;
  while (!context->join()) {
  }
  return nullptr;
}

ProcessContextPtr start_by_fork(const std::function<void(int)>& function, const SpawnOptions& options) {
  std::cout.flush();
  std::fflush(nullptr);  // Else each child would print what waits here once more.
  return start(options, [function, daemon = options.daemon, mask = current_mask()](int index, int error_fd) {
    return fork_one(function, index, error_fd, daemon, mask);
  });
}

}  // namespace

ProcessContext::ProcessContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProcessContext::~ProcessContext() = default;

std::vector<int> ProcessContext::pids() const {
  return state_->children.pids();
}

bool ProcessContext::join(std::optional<std::chrono::milliseconds> timeout,
                          std::optional<std::chrono::milliseconds> grace_period) {
  return state_->children.join(timeout, grace_period);
}

ProcessContextPtr start_processes(const Call& call, const SpawnOptions& options) {
  if (has_pending_call()) std::exit(carry_out_pending_call());
  if (options.start_method == "fork") {
    return start_by_fork([call](int index) { call.unpack(call.function, index, call.arguments); }, options);
  }
  if (options.start_method != "spawn") {
    throw InvalidArgument("cannot find context for '" + options.start_method + "'; there is spawn and fork");
  }
  WrittenCall written;
  written.is_daemon = options.daemon;
  written.call = call;
  return start(options, [written, mask = current_mask()](int index, int error_fd) {
    return spawn_one(written, index, error_fd, mask);
  });
}

ProcessContextPtr start_processes(const std::function<void(int)>& function, const SpawnOptions& options) {
  if (options.start_method != "fork") {
    throw InvalidArgument("start_processes: a closure cannot reach another run of the program by '" +
                          options.start_method + "'; give a plain function, or start_method \"fork\"");
  }
  return start_by_fork(function, options);
}

ProcessContextPtr spawn(const Call& call, SpawnOptions options) {
  if (options.start_method != "spawn") {
    base::log::warning("This method only supports start_method=spawn (got: " + options.start_method +
                       "). To use a different start_method use: multiprocessing::start_processes(...)");
    options.start_method = "spawn";
  }
  return start_processes(call, options);
}

}  // namespace tensorplay::multiprocessing
