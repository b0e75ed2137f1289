/// The code blocks of the specification, each beside its counterpart in C++. Those that need a GPU run here as far as
/// they do without one; those of the debug server are tested with it.
#include "tensorplay/distributed.hpp"
#include "tensorplay/multiprocessing.hpp"
#include "tensorplay/profiler.hpp"
#include "tests/support/rank_checks.hpp"
#include "tests/support/rank_threads.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace dist = tensorplay::distributed;
namespace mp = tensorplay::multiprocessing;
using namespace tensorplay::testing;
using namespace std::chrono_literals;

namespace {

/// A port that was free a moment ago.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool is_bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  ::close(fd);
  return is_bound ? ntohs(address.sin_port) : 0;
}

}  // namespace

// import tensorplay.distributed as dist
//
// # Use address of one of the machines
// dist.init_process_group(backend, init_method='tcp://10.1.1.20:23456',
//                         rank=args.rank, world_size=4)
TEST_CASE("initialisation by the address of one of the machines") {
  const std::string init_method = "tcp://127.0.0.1:" + std::to_string(free_port());
  REQUIRE(run_threads(4, [&](int rank) {
            dist::init_process_group("gloo", {.init_method = init_method, .world_size = 4, .rank = rank});
            check(dist::is_initialized() && dist::get_rank() == rank, "rank");
            dist::destroy_process_group();
          }) == all_well(4));
}

// import tensorplay.distributed as dist
//
// # rank should always be specified
// dist.init_process_group(backend, init_method='file:///mnt/nfs/sharedfile',
//                         world_size=4, rank=args.rank)
TEST_CASE("initialisation by a shared file") {
  const TemporaryDirectory directory;
  REQUIRE(run_threads(4, [&](int rank) {
            dist::init_process_group(
                "gloo", {.init_method = "file://" + directory.file("sharedfile"), .world_size = 4, .rank = rank});
            check(dist::get_world_size() == 4, "size");
            dist::destroy_process_group();
          }) == all_well(4));
}

// # Code runs on each rank.
// dist.init_process_group("nccl", rank=rank, world_size=2)
// output = tensorplay.tensor([rank]).cuda(rank)
// s = tensorplay.cuda.Stream()
// handle = dist.all_reduce(output, async_op=True)
// # Wait ensures the operation is enqueued, but not necessarily complete.
// handle.wait()
// # Using result on non-default stream.
// with tensorplay.cuda.stream(s):
//     s.wait_stream(tensorplay.cuda.default_stream())
//     output.add_(100)
// if rank == 0:
//     # if the explicit call to wait_stream was omitted, the output below will be
//     # non-deterministically 1 or 101, depending on whether the allreduce overwrote
//     # the value after the add completed.
//     print(output)
//
// On the CPU wait() means complete; the streams need a GPU.
TEST_CASE("an asynchronous all_reduce, waited for before its output is used") {
  const auto store = std::make_shared<dist::HashStore>();
  REQUIRE(run_threads(2, [&](int rank) {
            dist::init_process_group("gloo", {.world_size = 2, .rank = rank, .store = store});
            auto output = tensorplay::tensor({rank});
            auto handle = dist::all_reduce(output, {.async_op = true});
            handle->wait();
            check(handle->is_completed(), "complete");
            output.add_(100);
            if (rank == 0) check(to_string(output) == "tensor([101], dtype=int32)", to_string(output));
            dist::destroy_process_group();
          }) == all_well(2));
}

// import tensorplay
// import tensorplay.distributed as dist
// with tensorplay.profiler():
//     tensor = tensorplay.randn(20, 10)
//     dist.all_reduce(tensor)
TEST_CASE("profiling a collective") {
  REQUIRE(run_ranks(1, [](int) {
            tensorplay::profiler::profile profiler;
            auto tensor = tensorplay::randn({20, 10}, 0);
            dist::all_reduce(tensor);
            profiler.stop();
            check(!profiler.events().empty(), "events");
          }) == all_well(1));
}

// def worker(rank):
//     dist.init_process_group("nccl", rank=rank, world_size=2)
//     # monitored barrier requires gloo process group to perform host-side sync.
//     group_gloo = dist.new_group(backend="gloo")
//     if rank not in [1]:
//         dist.monitored_barrier(group=group_gloo, timeout=timedelta(seconds=2))
//
// if __name__ == "__main__":
//     os.environ["MASTER_ADDR"] = "localhost"
//     os.environ["MASTER_PORT"] = "29501"
//     mp.spawn(worker, nprocs=2, args=())
//
// RuntimeError: Rank 1 failed to pass monitoredBarrier in 2000 ms
//  Original exception:
// [gloo/transport/tcp/pair.cc:598] Connection closed by peer [2401:db00:eef0:1100:3560:0:1c05:25d]:8594
namespace {

void worker(int rank) {
  // Another backend than gloo for the default group; a real one of that kind would need GPUs.
  dist::init_process_group("fake", {.init_method = "env://", .world_size = 2, .rank = rank});
  auto group_gloo = dist::new_group({.backend = "gloo"});
  if (rank != 1) dist::monitored_barrier({.group = group_gloo, .timeout = 2s});
}

}  // namespace

TEST_CASE("a monitored barrier that one of two spawned ranks does not enter") {
  ::setenv("MASTER_ADDR", "localhost", 1);
  ::setenv("MASTER_PORT", std::to_string(free_port()).c_str(), 1);
  std::string text;
  try {
    mp::spawn(worker, {.nprocs = 2});
  } catch (const mp::ProcessRaisedException& error) {
    text = error.what();
  }
  ::unsetenv("MASTER_ADDR");
  ::unsetenv("MASTER_PORT");
  // Closed or reset, as the end of rank 1's process comes about.
  REQUIRE_THAT(text, Catch::Contains("Rank 1 failed to pass monitoredBarrier in 2000 ms\n Original exception:\n") &&
                         Catch::Contains("pair.cc") && Catch::Contains("by peer") && Catch::Contains("]:"));
}

// class reduce_op: deprecated enum-like class for reduction operations: SUM, PRODUCT, MIN, and MAX.
TEST_CASE("the deprecated reduce_op still names the reductions") {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  REQUIRE(dist::ReduceOp(dist::reduce_op::SUM) == dist::ReduceOp::SUM);
  REQUIRE(dist::ReduceOp(dist::reduce_op::PRODUCT) == dist::ReduceOp::PRODUCT);
  REQUIRE(dist::ReduceOp(dist::reduce_op::MIN) == dist::ReduceOp::MIN);
  REQUIRE(dist::ReduceOp(dist::reduce_op::MAX) == dist::ReduceOp::MAX);
#pragma GCC diagnostic pop
}
