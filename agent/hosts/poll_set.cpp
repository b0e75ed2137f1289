#include "agent/hosts/poll_set.hpp"

#include <algorithm>

namespace tensorplay::agent {

void PollSet::wait() {
  int timeout = -1;
  if (wake_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*wake_ - Clock::now());
    timeout = static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 3'600'000));
  }
  if (::poll(waits_.data(), waits_.size(), timeout) <= 0) return;
  for (std::size_t i = 0; i < waits_.size(); ++i) {
    if (waits_[i].revents != 0) actions_[i]();
  }
}

}  // namespace tensorplay::agent
