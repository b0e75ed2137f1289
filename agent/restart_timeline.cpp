#include "agent/restart_timeline.hpp"

#include <cstdio>

namespace tensorplay::agent {
namespace {

double ms(RestartTimeline::TimePoint from, RestartTimeline::TimePoint to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace

std::string describe(const RestartTimeline& t) {
  char text[200];
  std::snprintf(text, sizeof text,
                "%.1f ms from the first end to the last start (stopping %.1f ms, rendezvous %.1f ms, spawning %.1f ms)",
                ms(t.detected, t.spawned), ms(t.detected, t.stopped), ms(t.stopped, t.ordered),
                ms(t.ordered, t.spawned));
  std::string out = text;
  if (t.first_store_use) {
    std::snprintf(text, sizeof text, ", first use of the store %.1f ms later", ms(t.spawned, *t.first_store_use));
    out += text;
  }
  return out;
}

}  // namespace tensorplay::agent
