/// tpstore serve: a store for a few scripts, until it is stopped.
#pragma once

#include "apps/tpstore/arguments.hpp"

namespace tpstore {

/// Serves until SIGINT, SIGTERM or SIGHUP and returns the exit code. Says on stdout, in one line, where it serves.
int run_serve(const Arguments& arguments);

}  // namespace tpstore
