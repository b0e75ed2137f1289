/// What tpstore's commands do, but for serve, list and dump.
#pragma once

#include "apps/tpstore/arguments.hpp"
#include "runtime/store/store_client.hpp"

namespace tpstore {

/// Connects to the store that the arguments or the environment name. Throws UsageError when neither does.
tensorplay::store::StoreClient connect(const Arguments& arguments);

/// Runs the command and returns the exit code. Errors of the store are thrown.
int run_command(const Arguments& arguments);

/// The key as it is on the wire.
std::string wire_key(const Arguments& arguments, const std::string& key);

}  // namespace tpstore
