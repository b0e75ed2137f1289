/// Plays a scenario file against the membership core (docs/scenarios.md): commands at the left margin, what the core
/// answers indented below each.
#pragma once

#include "rendezvous/membership.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tensorplay::rendezvous::scenario {

/// The file's text with every answer replaced by what the core answers now. Throws std::runtime_error, with the line,
/// for a command that makes no sense.
std::string replay(const std::string& text);

}  // namespace tensorplay::rendezvous::scenario
