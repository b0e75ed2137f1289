/// tprun --stdin-lifeline: one host's end of --hosts. Reads an assignment from standard input, runs a tprun for this
/// host and relays for others behind it, and says upward what they print and how they end. When standard input ends, so
/// does everything here.
#pragma once

namespace tensorplay::agent {

/// Returns the exit code of the relay itself: 0 once all is over, 2 for input that is not a tprun's.
int run_relay();

}  // namespace tensorplay::agent
