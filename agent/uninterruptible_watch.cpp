#include "agent/uninterruptible_watch.hpp"

#include "agent/process_tree.hpp"
#include "runtime/base/environment.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <system_error>

namespace tensorplay::agent {

namespace {
constexpr int kLooksPerLimit = 4;
constexpr std::chrono::milliseconds kLongestPause{1'000};
}  // namespace

std::chrono::milliseconds uninterruptible_limit_from_environment() {
  const auto text = base::env_value(base::env::kUninterruptibleTimeout);
  if (!text) return {};
  char* end = nullptr;
  const double seconds = std::strtod(text->c_str(), &end);
  const bool is_number = end != text->c_str() && *end == '\0' && std::isfinite(seconds);
  if (!is_number || seconds <= 0) return {};
  return std::chrono::milliseconds(static_cast<long>(std::clamp(seconds * 1e3, 4.0, 1e12)));
}

UninterruptibleWatch::UninterruptibleWatch(asio::io_context& loop, std::chrono::milliseconds limit,
                                           std::function<std::vector<pid_t>()> live_workers,
                                           std::function<void(pid_t)> on_stuck)
    : limit_(limit), live_workers_(std::move(live_workers)), on_stuck_(std::move(on_stuck)), timer_(loop) {
  look_later();
}

UninterruptibleWatch::~UninterruptibleWatch() {
  *alive_ = false;
}

void UninterruptibleWatch::look_later() {
  timer_.expires_after(std::min(limit_ / kLooksPerLimit, kLongestPause));
  timer_.async_wait([this, alive = alive_](std::error_code error) {
    if (!error && *alive) look();
  });
}

void UninterruptibleWatch::look() {
  const TimePoint now = std::chrono::steady_clock::now();
  for (const pid_t pid : live_workers_()) {
    const auto stat = read_process_stat(pid);
    if (!stat || stat->state != 'D') {
      since_.erase(pid);
    } else if (now - since_.try_emplace(pid, now).first->second >= limit_) {
      return on_stuck_(pid);
    }
  }
  look_later();
}

}  // namespace tensorplay::agent
