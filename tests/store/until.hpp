/// Waits for a condition that no event announces, with a deadline.
#pragma once

#include <chrono>
#include <thread>

namespace tensorplay::store::testing {

/// Whether `condition` becomes true within 30 seconds.
template <typename Condition>
bool until(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace tensorplay::store::testing
