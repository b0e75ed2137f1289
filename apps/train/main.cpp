/// train: the example to start from. A model, an optimiser, checkpoints, and the dozen lines that make it data-parallel
/// and able to survive the death of a worker.
#include "apps/train/options.hpp"
#include "apps/train/trainer.hpp"
#include "tensorplay/distributed/elastic.hpp"

int main(int argc, char** argv) {
  train::Options options;
  int exit_code = 0;
  if (!train::parse_options(argc, argv, options, exit_code)) return exit_code;
  return tensorplay::distributed::elastic::record([&] { return train::run(options); });
}
