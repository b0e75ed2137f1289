#include "agent/launch.hpp"

#include <stdexcept>

namespace tensorplay::agent {

int run_launch(const LaunchPlan&) {
  throw std::runtime_error("this build holds no agent; only --dry-run works");
}

}  // namespace tensorplay::agent
