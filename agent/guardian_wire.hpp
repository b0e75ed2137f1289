/// What guardian and agent say to each other over their socket pair: whole messages, both built from one binary.
#pragma once

#include "agent/guardian.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tensorplay::agent {

/// Guardian to agent: a signal has come.
struct SignalMessage {
  std::int32_t signal = 0;
  std::int32_t from_step_daemon = 0;
};

/// Agent to guardian: it runs.
struct Heartbeat {};

/// Agent to guardian: a result is its last word.
using AgentMessage = std::variant<AgentResult, AgentLease, Heartbeat>;

/// No message is longer.
inline constexpr std::size_t kMaxAgentMessage = 64 << 10;

std::string encode(const AgentMessage& message);

/// nullopt for what is no message.
std::optional<AgentMessage> decode_agent_message(std::string_view bytes);

}  // namespace tensorplay::agent
