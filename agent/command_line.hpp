/// Takes tprun's command line apart: its own options, and the program with everything behind it.
///
/// The first word that is neither an option nor an option's value is the program, and every later word belongs to it,
/// whatever it looks like. One "--" directly before or directly after the program is dropped, not one on each side.
/// A core without I/O.
#pragma once

#include "agent/launch_plan.hpp"
#include "agent/settings.hpp"

#include <span>
#include <string>
#include <vector>

namespace tensorplay::agent {

struct CommandLine {
  Settings settings;  ///< Only what the command line says.
  /// Which words each long option took: [first, last) of the words given.
  struct Place {
    OptionId id;
    std::size_t first, last;
  };
  std::vector<Place> places;
  bool has_program = false;
  std::vector<std::string> program;  ///< The program and its words, as written; empty without one.
};

/// `words` without the name of tprun itself. Throws UsageError for what is not an option, an ambiguous abbreviation, a
/// missing value or a value given to a flag.
CommandLine parse_command_line(std::span<const std::string> words, Front front);

/// Options that `front` knows.
bool is_known_to(const OptionSpec& spec, Front front);

}  // namespace tensorplay::agent
