#include "apps/train/trainer.hpp"

#include "apps/train/adamw.hpp"
#include "apps/train/char_model.hpp"
#include "apps/train/corpus.hpp"
#include "tensorplay/distributed.hpp"
#include "tensorplay/nn/parallel/distributed_data_parallel.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

namespace train {
namespace {

namespace dist = tensorplay::distributed;
using dist::elastic::CheckpointFolder;
using tensorplay::Tensor;
using tensorplay::nn::parallel::DistributedDataParallel;

/// The world for the time of the training. An exception that unwinds through here reaches the agent before the
/// connections close; see dist::elastic::record.
class ProcessGroup {
 public:
  ProcessGroup() {
    if (std::getenv("RANK") != nullptr) {
      dist::init_process_group({.backend = "gloo"});
    } else {
      // Started by hand: a world of one.
      dist::init_process_group(
          {.backend = "gloo", .world_size = 1, .rank = 0, .store = std::make_shared<dist::HashStore>()});
    }
  }
  ~ProcessGroup() { dist::destroy_process_group(); }
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;
};

/// Where rank 0 keeps checkpoints, if anywhere.
std::optional<CheckpointFolder> open_checkpoints(const Options& options, const Corpus& corpus) {
  CheckpointFolder::Options folder;
  folder.config = {{"text", std::to_string(corpus.fingerprint())},     {"seed", std::to_string(options.seed)},
                   {"batch-size", std::to_string(options.batch_size)}, {"lr", std::to_string(options.learning_rate)},
                   {"context", std::to_string(options.context)},       {"embedding", std::to_string(options.embedding)},
                   {"hidden", std::to_string(options.hidden)},         {"layers", std::to_string(options.layers)}};
  if (!options.checkpoint_dir.empty()) return CheckpointFolder(options.checkpoint_dir, folder);
  if (dist::elastic::max_restarts() == 0) return std::nullopt;
  folder.is_temporary = true;
  return CheckpointFolder(dist::elastic::temporary_checkpoint_path("train"), folder);
}

/// What data parallelism has to know of the model: each piece with its gradient, in the order of `pieces`.
tensorplay::nn::parallel::Model list(CharModel& model, std::span<float> gradients) {
  tensorplay::nn::parallel::Model listed;
  for (const auto& piece : model.pieces()) {
    listed.parameters.push_back({.name = piece.name,
                                 .value = Tensor::from_pointer(&model.parameters()[piece.offset], piece.shape),
                                 .gradient = Tensor::from_pointer(&gradients[piece.offset], piece.shape)});
  }
  return listed;
}

/// Prints a line now and then, with the speed since the last one.
class Progress {
 public:
  Progress(int every, int tokens_per_step) : every_(every), tokens_per_step_(tokens_per_step) {}

  void step(int step, float loss, bool is_last) {
    ++steps_since_;
    if (step % every_ != 0 && !is_last) return;
    const std::chrono::duration<double> elapsed = Clock::now() - since_;
    std::printf("step %d loss %.4f tokens/s %.0f\n", step, static_cast<double>(loss),
                steps_since_ * tokens_per_step_ / elapsed.count());
    std::fflush(stdout);
    steps_since_ = 0;
    since_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;

  int every_;
  int tokens_per_step_;
  int steps_since_ = 0;
  Clock::time_point since_ = Clock::now();
};

}  // namespace

int run(const Options& options) {
  const Corpus corpus =
      options.data.empty() ? Corpus::built_in(options.context) : Corpus::from_file(options.data, options.context);
  const ProcessGroup process_group;
  const int rank = dist::get_rank();
  const int world_size = dist::get_world_size();

  CharModel model({corpus.vocabulary_size(), options.context, options.embedding, options.hidden, options.layers},
                  options.seed);
  const auto parameters = model.parameters();
  AdamW optimizer(parameters.size(), options.learning_rate);

  std::vector<float> gradients(parameters.size());
  float loss = 0;

  std::optional<CheckpointFolder> checkpoints;
  if (rank == 0) checkpoints = open_checkpoints(options, corpus);
  // What training goes on from. All ranks go on from what rank 0 has: its checkpoint, or its first parameters.
  const std::vector<dist::elastic::NamedTensor> state = {{"parameters", Tensor::from_span(parameters)},
                                                         {"optimizer", Tensor::from_span(optimizer.state())},
                                                         {"loss", Tensor::from_pointer(&loss, {1})}};
  const auto first_step = static_cast<int>(dist::elastic::restore(checkpoints ? &*checkpoints : nullptr, state));
  if (rank == 0 && first_step > 0) {
    std::printf("continue from step %d\n", first_step);
    std::fflush(stdout);
  }

  DistributedDataParallel ddp(list(model, gradients));
  const auto ready = [&](std::size_t piece) { ddp.mark_ready(piece); };

  Progress progress(options.print_every, world_size * options.batch_size);
  for (int step = first_step + 1; step <= options.steps; ++step) {
    ddp.forward();
    loss =
        model.loss(corpus.batch(options.seed, step, rank * options.batch_size, options.batch_size), gradients, ready);
    ddp.finalize_backward();
    optimizer.update(parameters, gradients, step);

    const bool is_last = step == options.steps;
    const bool is_saved = step % options.checkpoint_every == 0 || is_last;
    if (is_saved || step % options.print_every == 0) {
      dist::all_reduce(Tensor::from_pointer(&loss, {1}), {.op = dist::ReduceOp::AVG});
    }
    if (rank != 0) continue;
    progress.step(step, loss, is_last);
    if (checkpoints && is_saved) {
      checkpoints->save(step, state);
    }
  }
  if (rank == 0) {
    std::printf("final step=%d loss=%.6f\n", std::max(options.steps, first_step), static_cast<double>(loss));
    std::fflush(stdout);
  }
  dist::barrier();
  if (checkpoints) checkpoints->remove();
  return 0;
}

}  // namespace train
