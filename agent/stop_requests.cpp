#include "agent/stop_requests.hpp"

namespace tensorplay::agent {

StopRequests::Action StopRequests::apply(const Arrival& arrival, TimePoint now) {
  if (arrival.signal <= 0 || arrival.signal > 64) return Action::kNone;
  if (stop_signals_.count(arrival.signal) != 0) return apply_stop(now);
  return apply_notification(arrival, now);
}

StopRequests::Action StopRequests::apply_stop(TimePoint now) {
  if (!first_stop_) {
    first_stop_ = now;
    return Action::kStop;
  }
  return now - *first_stop_ >= kOneRequest ? Action::kForce : Action::kNone;
}

StopRequests::Action StopRequests::apply_notification(const Arrival& arrival, TimePoint now) {
  if (arrival.from_step_daemon) return Action::kNone;  // every worker has it already
  auto& by_place = unmatched_[static_cast<std::size_t>(arrival.signal)];
  const bool at_agent = arrival.place == Place::kAgent;
  auto& elsewhere = by_place[at_agent ? 0 : 1];
  if (elsewhere && now - *elsewhere < kOneRequest) {
    elsewhere.reset();
    return Action::kNone;
  }
  by_place[at_agent ? 1 : 0] = now;
  return Action::kNotify;
}

}  // namespace tensorplay::agent
