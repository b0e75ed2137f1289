/// Options given by a TOML file. The keys are the options' names, with '-' or '_'; configs/tprun.toml shows them all.
#pragma once

#include "agent/machine.hpp"
#include "agent/settings.hpp"

#include <string>

namespace tensorplay::agent {

/// Adds what the file says. Numbers, strings and booleans stand for values; lists where the option takes a list
/// (joined by commas); a table for rdzv-conf, redirects and tee. Throws UsageError naming file, line and key.
/// `where` begins the message when the file itself cannot be read ("--config=job.toml").
void read_config_file(const std::string& where, const std::string& path, const Machine& machine, Settings& settings);

}  // namespace tensorplay::agent
