#pragma once

#include "rendezvous/discovery/discovery.hpp"
#include "runtime/base/fd.hpp"

#include <chrono>
#include <optional>
#include <poll.h>
#include <vector>

namespace tensorplay::rendezvous {

/// Ends the waiting of one thread from another: a descriptor that stays readable once set.
/// Thread rules: set() from any thread, the rest from the waiting one.
class Interrupt {
 public:
  using Clock = std::chrono::steady_clock;

  Interrupt();

  void set() noexcept;

  /// Throws Cancelled when it has been set.
  void check() const;

  /// poll(2) over `waited` until `until` (nullopt: for ever). Fills in revents. Throws Cancelled, and SocketError where
  /// poll fails.
  void wait(std::vector<pollfd>& waited, std::optional<Clock::time_point> until) const;

  /// Sleeps until then.
  void wait_until(Clock::time_point until) const;

 private:
  base::UniqueFd fd_;
};

}  // namespace tensorplay::rendezvous
