#include "agent/scheduler_facts.hpp"

#include "agent/option_values.hpp"
#include "runtime/base/environment.hpp"

#include <algorithm>
#include <cctype>

namespace tensorplay::agent {
namespace {

bool is_key(std::string_view written, std::string_view key) {
  return written.size() == key.size() && std::equal(written.begin(), written.end(), key.begin(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
         });
}

/// KillWait of slurm.conf; SLURM's own default where the file does not name it, nullopt where it cannot be read.
std::optional<std::chrono::milliseconds> slurm_kill_wait(const EnvironmentView& environment, const Machine& machine) {
  const std::string path(environment.find_non_empty(base::env::kSlurmConf).value_or("/etc/slurm/slurm.conf"));
  const auto text = machine.read_file(path);
  if (!text) return std::nullopt;
  long seconds = 30;
  for (const std::string_view line : split(*text, '\n')) {
    const std::string_view statement = trimmed(line.substr(0, line.find('#')));
    const auto equals = statement.find('=');
    if (equals == std::string_view::npos || !is_key(trimmed(statement.substr(0, equals)), "KillWait")) continue;
    seconds = as_whole(statement.substr(equals + 1)).value_or(seconds);
  }
  return std::chrono::seconds(seconds);
}

}  // namespace

SchedulerFacts find_scheduler_facts(const EnvironmentView& environment, const Machine& machine,
                                    std::string_view choice) {
  SchedulerFacts facts;
  const bool is_slurm = environment.find_non_empty(base::env::kSlurmJobId).has_value();
  if (choice == "slurm" || (choice == "auto" && is_slurm)) {
    facts.name = "slurm";
    facts.kill_wait = slurm_kill_wait(environment, machine);
  }
  return facts;
}

}  // namespace tensorplay::agent
