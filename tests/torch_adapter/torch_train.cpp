/// A libtorch model trained on all ranks that tprun started.
///
///     tprun --nproc-per-node=2 torch_train [plain|accumulate|unused] [SAMPLES OF EACH RANK]
///
/// Ends with "final loss=L" of all samples together; throws when the ranks' parameters are not the same bits.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include <tensorplay/distributed.hpp>
#include <tensorplay/nn/parallel/torch_module.hpp>

namespace dist = tensorplay::distributed;
using tensorplay::nn::parallel::borrow;
using tensorplay::nn::parallel::TorchDistributedDataParallel;

namespace {

struct Net : torch::nn::Module {
  Net() {
    first = register_module("first", torch::nn::Linear(8, 32));
    second = register_module("second", torch::nn::Linear(32, 1));
    spare = register_module("spare", torch::nn::Linear(32, 1));
    calls = register_buffer("calls", torch::zeros({1}, torch::kLong));
  }
  torch::Tensor forward(torch::Tensor x, bool uses_spare) {
    calls += 1;
    x = torch::tanh(first(x));
    return uses_spare ? spare(x) : second(x);
  }
  torch::nn::Linear first{nullptr}, second{nullptr}, spare{nullptr};
  torch::Tensor calls;
};

void check(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

int run(const std::string& mode, int samples) {
  dist::init_process_group({.backend = "gloo"});
  const int rank = dist::get_rank();
  const int world = dist::get_world_size();
  torch::set_num_threads(1);
  torch::manual_seed(1 + rank);  // Rank 0's parameters are taken.
  auto model = std::make_shared<Net>();
  {
    TorchDistributedDataParallel<Net> ddp(model, {.find_unused_parameters = true});
    torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));

    torch::manual_seed(7);
    const auto all_inputs = torch::randn({samples * world, 8});
    const auto all_targets = torch::sin(all_inputs.sum(1, true));
    const auto inputs = all_inputs.slice(0, rank * samples, (rank + 1) * samples);
    const auto targets = all_targets.slice(0, rank * samples, (rank + 1) * samples);

    for (int step = 0; step < 60; ++step) {
      optimizer.zero_grad(step % 2 == 0);  // Dropped and kept gradients, both.
      // In this mode one rank alone trains the spare layer; in the others nobody does.
      const bool uses_spare = mode == "unused" && rank == 1;
      if (mode == "accumulate") {
        const auto guard = ddp.no_sync();
        (torch::mse_loss(ddp.forward(inputs, false), targets) / 2).backward();
      }
      const double part = mode == "accumulate" ? 2 : 1;
      (torch::mse_loss(ddp.forward(inputs, uses_spare), targets) / part).backward();
      check(mode == "unused" || !model->spare->weight.grad().defined() || step % 2 == 1,
            "a gradient that nobody made is there");
      optimizer.step();
    }
    for (const auto& parameter : model->parameters()) {
      auto mine = borrow(parameter).clone();
      auto first = mine.clone();
      dist::broadcast(first);
      check(tensorplay::equal(first, mine), "the ranks' parameters differ");
    }
    check(model->calls.item<long>() > 0, "the buffer counts");
    const torch::NoGradGuard no_grad;
    const auto loss = torch::mse_loss(model->forward(all_inputs, false), all_targets).item<float>();
    if (rank == 0) std::printf("final loss=%.6f\n", static_cast<double>(loss));
  }
  for (const auto& parameter : model->parameters()) {  // The wrapper is gone; gradients live on.
    check(!parameter.grad().defined() || std::isfinite(parameter.grad().sum().item<float>()), "a gradient is gone");
  }
  dist::destroy_process_group();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dist::elastic::record(
      [&] { return run(argc > 1 ? argv[1] : "plain", argc > 2 ? std::max(1, std::atoi(argv[2])) : 32); });
}
