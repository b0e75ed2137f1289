/// Descriptors 0, 1 and 2, as tprun finds them.
#pragma once

namespace tensorplay::agent {

/// Opens /dev/null for those that are closed, so that no file of ours ever becomes somebody's stdout. Called once,
/// first thing in main, with one thread.
void hold_standard_streams();

}  // namespace tensorplay::agent
