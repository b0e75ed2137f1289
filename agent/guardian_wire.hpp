/// What guardian and agent say to each other over their socket pair: whole messages, both built from one binary.
#pragma once

#include <cstdint>

namespace tensorplay::agent {

/// Guardian to agent: a signal has come.
struct SignalMessage {
  std::int32_t signal = 0;
  std::int32_t from_step_daemon = 0;
};

/// Agent to guardian, once, as its last word.
struct ResultMessage {
  std::int32_t exit_code = 0;
  std::int32_t stop_signal = 0;
  std::int32_t leaves_daemons = 0;
};

}  // namespace tensorplay::agent
