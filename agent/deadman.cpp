#include "agent/deadman.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace tensorplay::agent {

Deadman::Deadman() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  if (::timer_create(CLOCK_BOOTTIME, &event, &timer_) != 0) {
    throw std::system_error(errno, std::generic_category(), "a timer for the agent's lease");
  }
}

Deadman::~Deadman() {
  ::timer_delete(timer_);
}

void Deadman::arm(std::chrono::steady_clock::time_point when) {
  // Zero would disarm it.
  set(std::max<std::chrono::nanoseconds>(when - std::chrono::steady_clock::now(), std::chrono::milliseconds(1)));
}

void Deadman::disarm() {
  set(std::chrono::nanoseconds(0));
}

void Deadman::set(std::chrono::nanoseconds from_now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(from_now);
  itimerspec when{};
  when.it_value.tv_sec = seconds.count();
  when.it_value.tv_nsec = (from_now - seconds).count();
  ::timer_settime(timer_, 0, &when, nullptr);
}

}  // namespace tensorplay::agent
