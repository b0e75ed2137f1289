#pragma once

#include "runtime/base/fd.hpp"

#include <chrono>

#include <sys/socket.h>

namespace tensorplay::store {

/// Accepts connections, and keeps its head when descriptors run out.
///
/// A listening socket with a connection that cannot be accepted stays readable for ever, and a server that looks at it
/// spins. So one descriptor is held in reserve: it is given up to accept the connection and close it at once, which the
/// peer sees and may retry. Where even that fails the caller is told to pause.
/// Thread rules: one user at a time. Ownership: owns the listening socket.
class Acceptor {
 public:
  enum class Outcome { kAccepted, kNothingThere, kTurnedAway, kMustPause };
  static constexpr std::chrono::milliseconds kPause{100};

  explicit Acceptor(base::UniqueFd listener);

  /// Accepts one connection into `connection`, non-blocking and close-on-exec. kTurnedAway: one was closed for want of
  /// descriptors, look again.
  Outcome accept(base::UniqueFd& connection);

  int fd() const noexcept { return listener_.get(); }

 private:
  base::UniqueFd listener_;
  base::UniqueFd reserve_;
};

}  // namespace tensorplay::store
