#include "tensorplay/distributed/debug_level.hpp"

#include "runtime/base/environment.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <string>

namespace tensorplay::distributed {
namespace {

constexpr int kNotRead = -1;
std::atomic<int> g_level{kNotRead};

DebugLevel level_from_env() {
  const auto given = base::env_knob(base::env::kDistributedDebug);
  if (!given) return DebugLevel::OFF;
  std::string name = *given;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name == "OFF") return DebugLevel::OFF;
  if (name == "INFO") return DebugLevel::INFO;
  if (name == "DETAIL") return DebugLevel::DETAIL;
  throw InvalidArgument(std::string(base::env::kDistributedDebug) + "=" + *given + ": give OFF, INFO or DETAIL");
}

}  // namespace

DebugLevel get_debug_level() {
  if (g_level.load(std::memory_order_relaxed) == kNotRead) set_debug_level_from_env();
  return static_cast<DebugLevel>(g_level.load(std::memory_order_relaxed));
}

void set_debug_level(DebugLevel level) {
  g_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

void set_debug_level_from_env() {
  set_debug_level(level_from_env());
}

}  // namespace tensorplay::distributed
