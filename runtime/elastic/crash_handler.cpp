#include "runtime/elastic/crash_handler.hpp"

#include "runtime/elastic/crash_report.hpp"
#include "runtime/elastic/error_file.hpp"
#include "runtime/elastic/native_stack.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <sys/mman.h>

namespace tensorplay::distributed::elastic {
namespace {

constexpr std::array<int, 5> kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr std::size_t kStackBytes = 256 * 1024;
constexpr std::size_t kTextBytes = 64 * 1024;
constexpr unsigned kSecondsForNames = 2;
constexpr int kOwnFrames = 2;  // The handler and what it calls; the kernel's frame is shown.

/// All that the handler needs, allocated while the process is well.
struct Prepared {
  std::array<char, 4096> path{};
  std::array<char, 4096> temporary_path{};
  std::array<char, 1024> message{};  // What std::terminate knew, before it aborts.
  std::array<char, kTextBytes> call_stack{};
  std::array<char, kTextBytes> report{};
  std::array<struct sigaction, kSignals.size()> before{};
  std::array<bool, kSignals.size()> is_installed{};
  std::terminate_handler terminate_before = nullptr;
  void* stack = nullptr;
  stack_t stack_before{};
};

Prepared g_prepared;
std::atomic<bool> g_is_crashing{false};
volatile std::sig_atomic_t g_crash_signal = 0;

void write_all(int fd, const char* text, std::size_t size) noexcept {
  while (size > 0) {
    const auto written = ::write(fd, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<std::size_t>(written);
  }
}

void write_report(int signal, const timespec& when, bool readable_names) noexcept {
  Prepared& prepared = g_prepared;
  FixedText stack(prepared.call_stack.data(), prepared.call_stack.size());
  native_stack(stack, kOwnFrames, readable_names);
  if (prepared.path[0] == '\0') return;
  const char* message = prepared.message[0] != '\0' ? prepared.message.data() : signal_name(signal);
  const auto size = crash_report(prepared.report.data(), prepared.report.size(), message, stack.text(), when.tv_sec,
                                 when.tv_nsec / 1000);
  const int fd = ::open(prepared.temporary_path.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  write_all(fd, prepared.report.data(), size);
  ::close(fd);
  ::rename(prepared.temporary_path.data(), prepared.path.data());
}

[[noreturn]] void die_of(int signal) noexcept {
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  ::sigaction(signal, &default_action, nullptr);
  sigset_t alone;
  sigemptyset(&alone);
  sigaddset(&alone, signal);
  pthread_sigmask(SIG_UNBLOCK, &alone, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);  // Not reached, unless the signal is ignored beyond our reach.
}

/// The search for readable names hung, on the heap's lock most likely. What matters is written.
void give_up_on_names(int) {
  die_of(g_crash_signal);
}

void handle_crash(int signal) {
  if (g_is_crashing.exchange(true)) {
    // The report itself crashed, or a second thread did; the first one decides when the process ends.
    if (g_crash_signal != signal) ::pause();
    die_of(signal);
  }
  g_crash_signal = signal;
  timespec when{};
  ::clock_gettime(CLOCK_REALTIME, &when);
  write_report(signal, when, false);

  struct sigaction alarm_action {};
  alarm_action.sa_handler = &give_up_on_names;
  ::sigaction(SIGALRM, &alarm_action, nullptr);
  sigset_t alarm_alone;
  sigemptyset(&alarm_alone);
  sigaddset(&alarm_alone, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarm_alone, nullptr);
  ::alarm(kSecondsForNames);
  write_report(signal, when, true);

  std::array<char, 256> line{};
  FixedText heading(line.data(), line.size());
  heading << "tensorplay: process " << static_cast<long>(::getpid()) << " dies of " << signal_name(signal)
          << "; native stack, innermost first:\n";
  write_all(STDERR_FILENO, heading.text(), heading.size());
  write_all(STDERR_FILENO, g_prepared.call_stack.data(), std::strlen(g_prepared.call_stack.data()));
  die_of(signal);
}

/// Called where the exception was thrown, nothing being unwound: the stack still shows the place.
[[noreturn]] void handle_terminate() {
  if (const auto error = std::current_exception()) {
    const Thrown thrown = describe(error);
    FixedText message(g_prepared.message.data(), g_prepared.message.size());
    message << thrown.type.c_str();
    if (!thrown.text.empty()) message << ": " << thrown.text.c_str();
  }
  g_prepared.terminate_before();
  ::abort();
}

void copy_path(std::array<char, 4096>& out, const std::string& path) {
  FixedText text(out.data(), out.size());
  if (path.size() < out.size()) text << path.c_str();
}

}  // namespace

CrashHandler::CrashHandler(const std::string& error_file) {
  prepare_native_stack();
  Prepared& prepared = g_prepared;
  copy_path(prepared.path, error_file);
  copy_path(prepared.temporary_path, error_file.empty() ? "" : error_file + "." + std::to_string(::getpid()));
  prepared.message[0] = '\0';
  prepared.stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (prepared.stack != MAP_FAILED) {
    // Of this thread: one that overflows its stack could not run the handler on it. Others use their own.
    stack_t alternate{};
    alternate.ss_sp = prepared.stack;
    alternate.ss_size = kStackBytes;
    ::sigaltstack(&alternate, &prepared.stack_before);
  }
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &prepared.before[i]);
    const bool is_free = (prepared.before[i].sa_flags & SA_SIGINFO) == 0 && prepared.before[i].sa_handler == SIG_DFL;
    prepared.is_installed[i] = is_free;
    if (!is_free) continue;
    struct sigaction action {};
    action.sa_handler = &handle_crash;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;  // A crash in the handler must reach it, to end the process.
    ::sigaction(kSignals[i], &action, nullptr);
  }
  prepared.terminate_before = std::set_terminate(&handle_terminate);
}

CrashHandler::~CrashHandler() {
  Prepared& prepared = g_prepared;
  std::set_terminate(prepared.terminate_before);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (prepared.is_installed[i]) ::sigaction(kSignals[i], &prepared.before[i], nullptr);
  }
  if (prepared.stack != MAP_FAILED) {
    ::sigaltstack(&prepared.stack_before, nullptr);
    ::munmap(prepared.stack, kStackBytes);
  }
}

}  // namespace tensorplay::distributed::elastic
