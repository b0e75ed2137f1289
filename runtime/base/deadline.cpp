#include "tensorplay/distributed/deadline.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <limits>

namespace tensorplay::distributed {

Deadline Deadline::after(std::chrono::milliseconds timeout) {
  if (timeout.count() < 0) {
    throw InvalidArgument("a timeout of " + std::to_string(timeout.count()) + " ms is negative");
  }
  const auto now = Clock::now();
  if (timeout > std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max() - now)) return never();
  return Deadline(now + timeout);
}

int Deadline::poll_timeout_ms(Clock::time_point now) const noexcept {
  if (is_never()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(remaining(now)).count();
  return left > std::numeric_limits<int>::max() ? std::numeric_limits<int>::max() : static_cast<int>(left);
}

}  // namespace tensorplay::distributed
