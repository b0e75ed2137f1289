#include "rendezvous/restart_policy.hpp"

#include <algorithm>

namespace tensorplay::rendezvous {

RestartPolicy::RestartPolicy(int max_restarts, std::optional<std::chrono::nanoseconds> window)
    : max_restarts_(std::max(max_restarts, 0)), window_(window) {}

bool RestartPolicy::try_spend(TimePoint now) {
  if (left(now) == 0) return false;
  while (window_ && !recent_.empty() && recent_.front() + *window_ <= now) recent_.pop_front();
  recent_.push_back(now);
  ++spent_;
  return true;
}

int RestartPolicy::left(TimePoint now) const {
  const auto counts = [&](TimePoint spent_at) { return !window_ || spent_at + *window_ > now; };
  return max_restarts_ - static_cast<int>(std::count_if(recent_.begin(), recent_.end(), counts));
}

}  // namespace tensorplay::rendezvous
