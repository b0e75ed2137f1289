#pragma once

#include <cstdint>
#include <string>

namespace train {

/// What the command line says; the defaults train the built-in text in some seconds.
struct Options {
  std::string data;     ///< A text file; empty: the text inside the program.
  int steps = 1500;     ///< To train in all, those of earlier attempts included.
  int batch_size = 32;  ///< Samples for each rank and step.
  std::uint64_t seed = 1;
  std::string checkpoint_dir;  ///< Empty: a temporary one when an agent may restart us, else none.
  int checkpoint_every = 100;  ///< Steps.
  int print_every = 50;        ///< Steps.
  float learning_rate = 3e-3F;
  int context = 16;    ///< Characters that the model looks back.
  int embedding = 16;  ///< Numbers for each character.
  int hidden = 128;    ///< Units of each hidden layer.
  int layers = 1;      ///< Hidden layers.
};

/// Parses the command line. Returns false when the program should end with `exit_code` (--help, or a mistake, which
/// has been told on stderr).
bool parse_options(int argc, char** argv, Options& options, int& exit_code);

}  // namespace train
