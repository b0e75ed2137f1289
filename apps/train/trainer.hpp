#pragma once

#include "apps/train/options.hpp"

namespace train {

/// Trains as one rank of the world that tprun started, or alone. Returns the exit code; throws what went wrong.
int run(const Options& options);

}  // namespace train
