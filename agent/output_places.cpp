#include "agent/output_places.hpp"

#include "agent/atomic_file.hpp"
#include "agent/log_folder.hpp"
#include "agent/usage_error.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>

namespace tensorplay::agent {
namespace {

bool wants_files(const LoggingPlan& logging) {
  const auto wants = [](const StreamSelection& streams) {
    return streams.all != 0 || std::any_of(streams.by_local_rank.begin(), streams.by_local_rank.end(),
                                           [](const auto& entry) { return entry.second != 0; });
  };
  return !logging.log_dir.empty() || wants(logging.redirects) || wants(logging.tee);
}

}  // namespace

void check_output_places(const LaunchPlan& plan) {
  const LoggingPlan& logging = plan.logging;
  if (wants_files(logging) && logging.log_dir != "/dev/null") {
    try {
      check_log_parent(logging.log_dir);
    } catch (const distributed::DistError& error) {
      throw UsageError(std::string(error.what()) + "; give --log-dir a folder that can be written");
    }
  }
  if (plan.report_file.empty()) return;
  try {
    check_can_be_written(plan.report_file);
  } catch (const distributed::DistError& error) {
    throw UsageError("--report: " + std::string(error.what()) + "; give a file in a folder that can be written");
  }
}

}  // namespace tensorplay::agent
