/// Data-parallel training without a launcher: the program starts its own ranks.
///
///     spawn_train [RANKS]
///
/// A line is fitted to points, each rank with points of its own. Prints what rank 0 has learnt.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include <tensorplay/distributed.hpp>
#include <tensorplay/multiprocessing.hpp>
#include <tensorplay/nn/parallel/distributed_data_parallel.hpp>

namespace dist = tensorplay::distributed;
namespace mp = tensorplay::multiprocessing;
using tensorplay::nn::parallel::DistributedDataParallel;

namespace {

constexpr int kPoints = 64;
constexpr int kSteps = 200;

void train(int rank, int world_size, int port) {
  auto store = std::make_shared<dist::TCPStore>(
      dist::TCPStoreOptions{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port)});
  dist::init_process_group({.backend = "gloo", .world_size = world_size, .rank = rank, .store = store});
  // y = slope * x + offset
  auto slope = tensorplay::full({1}, rank);  // Rank 0's is taken.
  auto offset = tensorplay::full({1}, rank);
  auto slope_gradient = tensorplay::zeros({1});
  auto offset_gradient = tensorplay::zeros({1});
  {
    DistributedDataParallel ddp({.parameters = {{.name = "slope", .value = slope, .gradient = slope_gradient},
                                                {.name = "offset", .value = offset, .gradient = offset_gradient}}});
    for (int step = 0; step < kSteps; ++step) {
      ddp.forward();
      float by_slope = 0;
      float by_offset = 0;
      for (int i = 0; i < kPoints; ++i) {
        const float x = static_cast<float>(i * world_size + rank) / (kPoints * static_cast<float>(world_size)) - 0.5F;
        const float error = slope.data<float>()[0] * x + offset.data<float>()[0] - (3 * x + 2);
        by_slope += 2 * error * x / kPoints;
        by_offset += 2 * error / kPoints;
      }
      offset_gradient.fill_(by_offset);
      ddp.mark_ready(1);
      slope_gradient.fill_(by_slope);
      ddp.mark_ready(0);
      ddp.finalize_backward();
      slope.add_(slope_gradient.mul_(-0.5));
      offset.add_(offset_gradient.mul_(-0.5));
    }
  }
  if (rank == 0) std::printf("learnt y = %.2f x + %.2f on %d ranks\n", slope.item(), offset.item(), world_size);
  dist::destroy_process_group();
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  try {
    // The ranks meet at a store of this process, on a port that the system chooses.
    const dist::TCPStore store({.host = "127.0.0.1", .port = 0, .is_master = true});
    mp::spawn(train, {.nprocs = ranks}, ranks, static_cast<int>(store.port()));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "spawn_train: %s\n", error.what());
    return 1;
  }
  return 0;
}
