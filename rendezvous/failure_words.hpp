/// One failure as one sentence: what the restart line and the failure report say of it. Pure.
#pragma once

#include "rendezvous/messages.hpp"

#include <string>

namespace tensorplay::rendezvous {

/// The error a worker told, in one line: in its error file, else as Python's traceback or C++'s terminate put it on
/// stderr. Empty when there is none.
std::string told_error(const WorkerFailure& failure);

/// One failure without a full stop: "rank 2 on n2 died of SIGSEGV", "rank 0 failed with ValueError: no data (exit code
/// 1)". `with_host`: where there are several.
std::string describe_failure(const WorkerFailure& failure, bool with_host);

}  // namespace tensorplay::rendezvous
