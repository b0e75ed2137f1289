/// What the agent has told this worker through its environment.
#include "runtime/base/environment.hpp"
#include "tensorplay/distributed/elastic.hpp"

namespace tensorplay::distributed::elastic {
namespace {

namespace env = base::env;

int count_of(const char* name) {
  const auto value = base::env_integer(name);
  return value ? static_cast<int>(*value) : 0;
}

}  // namespace

bool is_launched() {
  return base::env_value(env::kRunId).has_value();
}

std::string run_id() {
  return base::env_value(env::kRunId).value_or("");
}

int restart_count() {
  return count_of(env::kRestartCount);
}

int max_restarts() {
  return count_of(env::kMaxRestarts);
}

}  // namespace tensorplay::distributed::elastic
