#include "agent/restart_timeline.hpp"

#include <cstdio>

namespace tensorplay::agent {
namespace {

double ms(RestartTimeline::TimePoint from, RestartTimeline::TimePoint to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace

RestartTimes times_of(const RestartTimeline& timeline, std::optional<RestartTimeline::TimePoint> first_store_use) {
  RestartTimes times;
  times.stopping_ms = ms(timeline.detected, timeline.stopped);
  times.rendezvous_ms = ms(timeline.stopped, timeline.ordered);
  times.spawning_ms = ms(timeline.ordered, timeline.spawned);
  if (first_store_use) times.first_store_use_ms = ms(timeline.spawned, *first_store_use);
  return times;
}

std::string describe(const RestartTimes& times) {
  char text[200];
  std::snprintf(text, sizeof text,
                "%.1f ms from the first end to the last start (stopping %.1f ms, rendezvous %.1f ms, spawning %.1f ms)",
                times.stopping_ms + times.rendezvous_ms + times.spawning_ms, times.stopping_ms, times.rendezvous_ms,
                times.spawning_ms);
  return text;
}

}  // namespace tensorplay::agent
