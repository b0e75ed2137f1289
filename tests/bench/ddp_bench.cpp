/// How much of the communication DistributedDataParallel hides: run it under tprun.
///
///     tprun --nproc-per-node=2 ddp_bench
///
/// A model of equal layers whose backward pass computes for a while before each gradient is there. One row for each
/// time a layer may take: the step beside its compute alone, its communication alone, their maximum and their sum.
/// "spin" computes on the CPU; "wait" sleeps, as a host does whose accelerator computes.
#include "tensorplay/distributed.hpp"
#include "tensorplay/nn/parallel/distributed_data_parallel.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace dist = tensorplay::distributed;
using tensorplay::nn::parallel::DistributedDataParallel;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLayers = 16;
constexpr std::int64_t kLayerElements = 1 << 20;  // 4 MB each, 64 MB of gradients.

struct LayeredModel {
  std::vector<tensorplay::Tensor> values;
  std::vector<tensorplay::Tensor> gradients;

  LayeredModel() {
    for (int i = 0; i < kLayers; ++i) {
      values.push_back(tensorplay::zeros({kLayerElements}));
      gradients.push_back(tensorplay::ones({kLayerElements}));
    }
  }
  tensorplay::nn::parallel::Model list() {
    tensorplay::nn::parallel::Model model;
    for (std::size_t i = 0; i < values.size(); ++i) {
      model.parameters.push_back({.name = "layer" + std::to_string(i),
                                  .value = values[i],
                                  .set_gradient = [this, i](const auto& place) { gradients[i] = place; }});
    }
    return model;
  }
};

void compute(std::chrono::microseconds time, bool spins) {
  if (!spins) return std::this_thread::sleep_for(time);
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

double median_ms(int rounds, const std::function<void()>& act) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    dist::barrier();
    const auto begin = Clock::now();
    act();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int run(int rounds) {
  dist::init_process_group({.backend = "gloo"});
  {
    LayeredModel model;
    DistributedDataParallel ddp(model.list(), {.bucket_cap_mb = 8, .gradient_as_bucket_view = true});
    const auto backward = [&](std::chrono::microseconds each, bool spins, bool reduces) {
      for (std::size_t i = kLayers; i-- > 0;) {
        compute(each, spins);
        if (reduces) ddp.mark_ready(i);
      }
      if (reduces) ddp.finalize_backward();
    };
    backward(std::chrono::microseconds(0), true, true);  // Buckets are rebuilt after the first.
    const double communication = median_ms(rounds, [&] { backward(std::chrono::microseconds(0), true, true); });
    if (dist::get_rank() == 0) {
      std::printf("| compute by | compute ms | communication ms | max | sum | step ms | hidden |\n");
      std::printf("| --- | --- | --- | --- | --- | --- | --- |\n");
    }
    for (const bool spins : {false, true}) {
      for (const double part : {0.5, 1.0, 2.0}) {
        // The same layer time on all ranks: rank 0's.
        auto each_us = tensorplay::full({1}, communication * part * 1000 / kLayers, tensorplay::DType::kInt64);
        dist::broadcast(each_us);
        const std::chrono::microseconds each(static_cast<std::int64_t>(each_us.item()));
        const double alone = median_ms(rounds, [&] { backward(each, spins, false); });
        const double step = median_ms(rounds, [&] { backward(each, spins, true); });
        if (dist::get_rank() != 0) continue;
        const double least = std::max(alone, communication);
        const double sum = alone + communication;
        std::printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.0f %% |\n", spins ? "spin" : "wait", alone,
                    communication, least, sum, step, 100 * (sum - step) / (sum - least));
        std::fflush(stdout);
      }
    }
  }
  dist::destroy_process_group();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return dist::elastic::record([&] { return run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 15); });
}
