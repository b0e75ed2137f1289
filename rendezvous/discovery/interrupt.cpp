#include "rendezvous/discovery/interrupt.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <unistd.h>

#include <sys/eventfd.h>

namespace tensorplay::rendezvous {

using distributed::Deadline;
using distributed::SocketError;

Interrupt::Interrupt() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_) throw SocketError(std::string("no event descriptor: ") + std::strerror(errno));
}

void Interrupt::set() noexcept {
  const std::uint64_t one = 1;
  // Can only fail when it is set already, billions of times.
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

void Interrupt::check() const {
  pollfd own{fd_.get(), POLLIN, 0};
  if (::poll(&own, 1, 0) > 0) throw Cancelled{};
}

void Interrupt::wait(std::vector<pollfd>& waited, std::optional<Clock::time_point> until) const {
  waited.push_back({fd_.get(), POLLIN, 0});
  const auto deadline = until ? Deadline::at(*until) : Deadline::never();
  const int ready = ::poll(waited.data(), waited.size(), deadline.poll_timeout_ms());
  const int error = errno;
  const bool is_set = ready > 0 && waited.back().revents != 0;
  waited.pop_back();
  if (is_set) throw Cancelled{};
  if (ready < 0 && error != EINTR) throw SocketError(std::string("waiting for a store: ") + std::strerror(error));
  if (ready < 0) {
    for (auto& entry : waited) entry.revents = 0;
  }
}

void Interrupt::wait_until(Clock::time_point until) const {
  std::vector<pollfd> nothing;
  while (Clock::now() < until) wait(nothing, until);
}

}  // namespace tensorplay::rendezvous
