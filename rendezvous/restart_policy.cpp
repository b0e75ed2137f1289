#include "rendezvous/restart_policy.hpp"

#include <algorithm>

namespace tensorplay::rendezvous {

RestartPolicy::RestartPolicy(RestartRules rules) : rules_(rules) {
  rules_.max_restarts = std::max(rules_.max_restarts, 0);
}

RestartAnswer RestartPolicy::ask(TimePoint now, std::chrono::nanoseconds ran) {
  if (ran >= rules_.progress_after) {
    fruitless_ = 0;
  } else if (spent_ > 0) {  // the first attempt is nobody's restart
    ++fruitless_;
  }
  if (rules_.no_progress_limit > 0 && fruitless_ >= rules_.no_progress_limit) return RestartAnswer::kNoProgress;
  if (left(now) <= 0) return RestartAnswer::kNoneLeft;
  while (rules_.window && !recent_.empty() && recent_.front() + *rules_.window <= now) recent_.pop_front();
  recent_.push_back(now);
  ++spent_;
  return RestartAnswer::kRestart;
}

void RestartPolicy::adopt(int spent, int recent, int fruitless, TimePoint now) {
  if (spent <= spent_) return;
  spent_ = spent;
  fruitless_ = std::max(fruitless, 0);
  // When they were spent is not known here: they count from now on.
  const auto most = static_cast<std::size_t>(std::clamp(recent, 0, rules_.max_restarts));
  while (recent_.size() < most) recent_.push_back(now);
}

int RestartPolicy::recent(TimePoint now) const {
  const auto counts = [&](TimePoint spent_at) { return !rules_.window || spent_at + *rules_.window > now; };
  return static_cast<int>(std::count_if(recent_.begin(), recent_.end(), counts));
}

}  // namespace tensorplay::rendezvous
