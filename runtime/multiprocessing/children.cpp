#include "runtime/multiprocessing/children.hpp"

#include "runtime/base/log.hpp"
#include "runtime/multiprocessing/call_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <system_error>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/wait.h>

namespace tensorplay::multiprocessing {
namespace {

constexpr std::chrono::milliseconds kTimeToTerminate = std::chrono::seconds(30);
constexpr std::chrono::milliseconds kTimeWhenDropped = std::chrono::seconds(5);

std::string name_of_signal(int signal) {
  if (const char* name = ::sigabbrev_np(signal); name != nullptr) return std::string("SIG") + name;
  return "<Unknown signal " + std::to_string(signal) + ">";
}

}  // namespace

Children::Children(int count, Start start) : children_(static_cast<std::size_t>(std::max(0, count))) {
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  keeper_ = std::thread([this, count, start = std::move(start)] { run(count, start); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_started_; });
  if (!failure_) return;
  lock.unlock();
  keeper_.join();
  std::rethrow_exception(failure_);
}

Children::~Children() {
  {
    std::unique_lock lock(mutex_);
    end_the_rest(lock, kTimeWhenDropped);
  }
  keeper_.join();
}

void Children::run(int count, const Start& start) {
  std::exception_ptr failure;
  for (int index = 0; index < count && !failure; ++index) {
    Child child;
    try {
      child.error_file.reset(make_memory_file("tp-spawn-error", ""));
      child.pid = start(index, child.error_file.get());
      child.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
      if (!child.pidfd) throw std::system_error(errno, std::generic_category(), "multiprocessing: pidfd_open");
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    children_[static_cast<std::size_t>(index)] = std::move(child);
  }
  if (failure) {
    for (const Child& child : children_) {
      if (child.pid <= 0) continue;
      ::kill(child.pid, SIGKILL);
      ::waitpid(child.pid, nullptr, 0);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    failure_ = failure;
    is_started_ = true;
    changed_.notify_all();
  }
  if (failure) return;
  while (true) {
    std::vector<pollfd> waited;
    for (const Child& child : children_) {
      if (!child.has_ended) waited.push_back({child.pidfd.get(), POLLIN, 0});
    }
    if (waited.empty()) return;
    if (::poll(waited.data(), waited.size(), -1) < 0) continue;
    for (Child& child : children_) {
      const auto ready = std::find_if(waited.begin(), waited.end(), [&](const pollfd& one) {
        return one.fd == child.pidfd.get() && one.revents != 0;
      });
      if (!child.has_ended && ready != waited.end()) reap(child);
    }
  }
}

void Children::reap(Child& child) {
  const std::lock_guard lock(mutex_);  // Nobody may signal the pid once it is free for others.
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED) != 0 && errno != ECHILD) return;
  child.status = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
  child.has_ended = true;
  child.end_order = ++ended_;
  changed_.notify_all();
}

std::vector<int> Children::pids() const {
  const std::lock_guard lock(mutex_);
  std::vector<int> result;
  for (const Child& child : children_) result.push_back(child.pid);
  return result;
}

bool Children::all_ended() const {
  return ended_ == static_cast<int>(children_.size());
}

bool Children::join(std::optional<std::chrono::milliseconds> timeout,
                    std::optional<std::chrono::milliseconds> grace_period) {
  std::unique_lock lock(mutex_);
  const auto is_news = [](const Child& child) { return child.has_ended && !child.is_joined; };
  const auto is_joined = [](const Child& child) { return child.is_joined; };
  const auto something_to_tell = [&] {
    return std::all_of(children_.begin(), children_.end(), is_joined) ||
           std::any_of(children_.begin(), children_.end(), is_news);
  };
  if (timeout) {
    if (!changed_.wait_for(lock, *timeout, something_to_tell)) return false;
  } else {
    changed_.wait(lock, something_to_tell);
  }
  const Child* culprit = nullptr;
  for (Child& child : children_) {
    if (!is_news(child)) continue;
    child.is_joined = true;
    if (child.status != 0 && (culprit == nullptr || child.end_order < culprit->end_order)) culprit = &child;
  }
  if (culprit == nullptr) return std::all_of(children_.begin(), children_.end(), is_joined);
  if (grace_period) changed_.wait_for(lock, *grace_period, [&] { return all_ended(); });
  end_the_rest(lock, grace_period.value_or(kTimeToTerminate));
  for (Child& child : children_) child.is_joined = true;
  report(*culprit, static_cast<int>(culprit - children_.data()));
}

void Children::end_the_rest(std::unique_lock<std::mutex>& lock, std::optional<std::chrono::milliseconds> grace_period) {
  if (all_ended()) return;
  signal_alive(SIGTERM, "Terminating process ");
  if (changed_.wait_for(lock, grace_period.value_or(kTimeToTerminate), [&] { return all_ended(); })) return;
  signal_alive(SIGKILL, "Unable to shutdown by SIGTERM, forcefully exiting process ");
  changed_.wait(lock, [&] { return all_ended(); });  // Only the kernel can hold a killed process up.
}

void Children::signal_alive(int signal, const char* what) {
  for (const Child& child : children_) {
    if (child.has_ended) continue;
    base::log::warning([&] { return what + std::to_string(child.pid) + " via signal " + name_of_signal(signal); });
    ::kill(child.pid, signal);
    if (signal == SIGTERM) ::kill(child.pid, SIGCONT);  // A stopped one could not end.
  }
}

void Children::report(const Child& child, int index) {
  const std::string head = "process " + std::to_string(index) + " terminated with ";
  if (const std::string error = read_whole(child.error_file.get()); !error.empty() && child.status == 1) {
    throw ProcessRaisedException(
        "\n\n-- Process " + std::to_string(index) + " terminated with the following error:\n" + error, index,
        child.pid);
  }
  if (child.status < 0) {
    const std::string name = name_of_signal(-child.status);
    throw ProcessExitedException(head + "signal " + name, index, child.pid, child.status, name);
  }
  throw ProcessExitedException(head + "exit code " + std::to_string(child.status), index, child.pid, child.status, "");
}

}  // namespace tensorplay::multiprocessing
