#include "runtime/multiprocessing/entry.hpp"

#include "runtime/elastic/throw_log.hpp"
#include "runtime/multiprocessing/call_file.hpp"
#include "tensorplay/distributed/elastic.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include <sys/prctl.h>

namespace tensorplay::multiprocessing {
namespace {

bool g_is_daemon = false;

/// The variable's value, taken away so that it reaches nobody else.
std::string take_variable() {
  const char* value = std::getenv(kCallVariable);
  const std::string text = value == nullptr ? "" : value;
  ::unsetenv(kCallVariable);
  return text;
}

int worker_index() {
  const char* rank = std::getenv("RANK");
  return rank == nullptr ? 0 : std::atoi(rank);
}

/// A worker under an agent: failures are told the way workers tell them.
int run_as_worker(const std::string& path) {
  return distributed::elastic::record([&] {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) throw std::runtime_error("the launcher is gone: " + path + " cannot be opened");
    const WrittenCall written = read_call(read_whole(fd));
    ::close(fd);
    written.call.unpack(written.call.function, worker_index(), written.call.arguments);
    return 0;
  });
}

int run_as_child(const std::string& descriptors) {
  int call_fd = -1;
  int error_fd = -1;
  if (std::sscanf(descriptors.c_str(), "%d:%d", &call_fd, &error_fd) != 2) {
    std::fprintf(stderr, "tensorplay: %s=%s is not understood\n", kCallVariable, descriptors.c_str());
    return 70;
  }
  ::fcntl(error_fd, F_SETFD, FD_CLOEXEC);
  return run_and_tell(error_fd, [&] {
    const WrittenCall written = read_call(read_whole(call_fd));
    ::close(call_fd);
    die_with(written.parent);
    set_daemon(written.is_daemon);
    written.call.unpack(written.call.function, written.index, written.call.arguments);
  });
}

int call_instead_of_main(int, char**, char**) {
  return carry_out_pending_call();
}

}  // namespace

bool has_pending_call() {
  return std::getenv(kCallVariable) != nullptr;
}

int carry_out_pending_call() {
  const std::string text = take_variable();
  return text.starts_with('/') ? run_as_worker(text) : run_as_child(text);
}

int run_and_tell(int error_fd, const std::function<void()>& function) {
  try {
    function();
    return 0;
  } catch (...) {
    const auto thrown = distributed::elastic::describe(std::current_exception());
    std::string text = thrown.type;
    if (!thrown.text.empty()) text.append(text.empty() ? "" : ": ").append(thrown.text);
    [[maybe_unused]] const auto written = ::pwrite(error_fd, text.data(), text.size(), 0);
    return 1;
  }
}

bool is_daemon() {
  return g_is_daemon;
}

void set_daemon(bool is_daemon) {
  g_is_daemon = is_daemon;
}

void die_with(int parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

}  // namespace tensorplay::multiprocessing

using Main = int (*)(int, char**, char**);
using StartMain = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);

// NOLINTNEXTLINE: the C library's own name.
extern "C" __attribute__((visibility("default"))) int __libc_start_main(Main main, int argc, char** argv,
                                                                        void (*init)(), void (*fini)(),
                                                                        void (*loader_fini)(), void* stack_end) {
  const auto next = reinterpret_cast<StartMain>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  namespace mp = tensorplay::multiprocessing;
  return next(mp::has_pending_call() ? &mp::call_instead_of_main : main, argc, argv, init, fini, loader_fini,
              stack_end);
}
