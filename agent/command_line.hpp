/// Takes tprun's command line apart: its own options, and the program with everything behind it.
///
/// The first word that is neither an option nor an option's value is the program, and every later word belongs to it,
/// whatever it looks like. One "--" directly before or directly after the program is dropped, not one on each side.
/// A core without I/O.
#pragma once

#include "agent/launch_plan.hpp"
#include "agent/settings.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tensorplay::agent {

/// A word that stood behind an option and was taken for its value: "--role train.py".
struct TakenWord {
  OptionId option;
  std::string word;
};

struct CommandLine {
  Settings settings;  ///< Only what the command line says.
  /// Which words each long option took: [first, last) of the words given.
  struct Place {
    OptionId id;
    std::size_t first, last;
  };
  std::vector<Place> places;
  std::optional<TakenWord> last_taken;  ///< When it was the last word of all: perhaps the program was meant.
  bool has_program = false;
  std::vector<std::string> program;  ///< The program and its words, as written; empty without one.
};

/// `words` without the name of tprun itself. Throws UsageError for what is not an option, an ambiguous abbreviation, a
/// missing value or a value given to a flag.
CommandLine parse_command_line(std::span<const std::string> words, Front front);

/// What to say when `word`, which was meant to be the program, was taken for the value of `spec`.
std::string took_the_program(const OptionSpec& spec, const std::string& word);

/// Options that `front` knows.
bool is_known_to(const OptionSpec& spec, Front front);

}  // namespace tensorplay::agent
