/// How long a restart took, and what for. A value.
#pragma once

#include "agent/run_report.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace tensorplay::agent {

/// The moments of one restart on this node, in their order.
struct RestartTimeline {
  using TimePoint = std::chrono::steady_clock::time_point;
  TimePoint detected{};  ///< The end of the first worker of the old round.
  TimePoint stopped{};   ///< No process of the old round was left.
  TimePoint ordered{};   ///< The leader's order for the new round was here.
  TimePoint spawned{};   ///< All workers of the new round had been started.
};

/// As the report has it. `first_store_use`: when a worker of the new round first spoke to the store.
RestartTimes times_of(const RestartTimeline& timeline,
                      std::optional<RestartTimeline::TimePoint> first_store_use = std::nullopt);

/// "12.3 ms from the first end to the last start (stopping 8.1 ms, rendezvous 0.2 ms, spawning 4.0 ms)"
std::string describe(const RestartTimes& times);

}  // namespace tensorplay::agent
