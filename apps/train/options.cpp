#include "apps/train/options.hpp"

#include <CLI/CLI.hpp>

namespace train {

bool parse_options(int argc, char** argv, Options& options, int& exit_code) {
  CLI::App app("train: a character-level language model, data-parallel over all ranks that tprun starts.");
  app.footer(
      "Examples:\n"
      "  train                                      one process, the built-in text\n"
      "  tprun --nproc-per-node=4 train             four ranks\n"
      "  tprun --nproc-per-node=4 --max-restarts=3 train --data=book.txt --checkpoint-dir=run1\n\n"
      "Rank 0 prints \"step N loss X tokens/s T\" and at the end \"final step=N loss=X\". The same seed, batch size "
      "and\n"
      "world size give the same loss, also when the run was killed and went on from a checkpoint.");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--data", options.data, "text file to learn (default: a text inside the program)")
      ->check(CLI::ExistingFile);
  app.add_option("--steps", options.steps, "steps to train")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--batch-size", options.batch_size, "samples for each rank and step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the parameters and the order of samples")->capture_default_str();
  app.add_option("--checkpoint-dir", options.checkpoint_dir,
                 "folder for checkpoints; training goes on from the newest there (default: a temporary one of this run "
                 "when tprun may restart it, else none)");
  app.add_option("--checkpoint-every", options.checkpoint_every, "steps between two checkpoints")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--print-every", options.print_every, "steps between two lines")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--lr", options.learning_rate, "learning rate")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--context", options.context, "characters the model looks back")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--embedding", options.embedding, "numbers for each character")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--hidden", options.hidden, "units of each hidden layer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--layers", options.layers, "hidden layers")->check(CLI::PositiveNumber)->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  return true;
}

}  // namespace train
