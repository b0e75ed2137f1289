/// What the agent has told this worker through its environment.
#include "runtime/base/environment.hpp"
#include "tensorplay/distributed/elastic.hpp"

#include <cstdio>

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

int round() {
  int agent = 0;
  int number = 0;
  const auto mark = base::env_value(env::kWorkerMark);
  return mark && std::sscanf(mark->c_str(), "%d.%d.", &agent, &number) == 2 ? number : 0;
}

}  // namespace tensorplay::distributed::elastic
