#include "tensorplay/distributed/init.hpp"

#include "tensorplay/distributed.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <unistd.h>

using namespace tensorplay;
using namespace tensorplay::distributed;
using namespace std::chrono_literals;
using tensorplay::testing::all_well;
using tensorplay::testing::run_ranks;
using tensorplay::testing::run_threads;

namespace {

void check(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

struct TemporaryFile {
  std::string path = "/tmp/tp_init_test_" + std::to_string(::getpid()) + "_" + std::to_string(std::random_device{}());
  ~TemporaryFile() {
    std::filesystem::remove(path);
    std::filesystem::remove(path + ".users");
  }
};

}  // namespace

TEST_CASE("init returns on no rank before every rank has come") {
  constexpr int kSize = 4;
  auto store = std::make_shared<HashStore>();
  std::atomic<int> arrived{0};
  REQUIRE(run_threads(kSize, [&](int rank) {
            // The last one comes when all others are known to wait.
            if (rank == kSize - 1) store->wait({"0//joined/0", "0//joined/1", "0//joined/2"});
            ++arrived;
            init_process_group({.backend = "gloo", .world_size = kSize, .rank = rank, .store = store});
            check(arrived == kSize, "init returned too early");
            check(get_rank() == rank && get_world_size() == kSize, "rank or size");
            destroy_process_group();
          }) == all_well(kSize));
}

TEST_CASE("the ranks that never came are named, within the timeout") {
  auto store = std::make_shared<HashStore>();
  const auto endings = run_threads(2, [&](int rank) {
    init_process_group(
        {.backend = "gloo", .timeout = 300ms, .world_size = 4, .rank = rank == 0 ? 0 : 2, .store = store});
  });
  for (const auto& ending : endings) {
    REQUIRE_THAT(ending, Catch::Contains("rank 1 and rank 3 never came") && Catch::Contains("for 4 ranks"));
  }
}

TEST_CASE("ranks meet in a file") {
  const TemporaryFile file;
  REQUIRE(run_threads(3, [&](int rank) {
            init_process_group(
                {.backend = "gloo",
                 .init_method = "file://" + file.path + "?rank=" + std::to_string(rank) + "&world_size=3"});
            Tensor sum = full({1}, rank);
            all_reduce(sum);
            check(sum.item() == 3, "sum");
            destroy_process_group();
          }) == all_well(3));
}

TEST_CASE("initialise, destroy, initialise again over one store works") {
  auto store = std::make_shared<HashStore>();
  REQUIRE(run_threads(3, [&](int rank) {
            for (int round = 0; round < 5; ++round) {
              init_process_group({.backend = "gloo", .world_size = 3, .rank = rank, .store = store});
              Tensor sum = full({1}, rank + round);
              all_reduce(sum);
              check(sum.item() == 3 + 3 * round, "sum");
              destroy_process_group();
              check(!is_initialized(), "still initialized");
            }
          }) == all_well(3));
}

TEST_CASE("arguments that contradict each other are refused with what to do") {
  World world;
  const World::Binding binding(world);
  const auto store = std::make_shared<HashStore>();
  using Catch::Contains;
  REQUIRE_THROWS_WITH(init_process_group({.init_method = "env://", .world_size = 1, .rank = 0, .store = store}),
                      Contains("not both"));
  REQUIRE_THROWS_WITH(init_process_group({.rank = 0, .store = store}), Contains("positive world_size"));
  REQUIRE_THROWS_WITH(init_process_group({.world_size = 1, .store = store}), Contains("rank"));
  REQUIRE_THROWS_WITH(init_process_group({.world_size = 1, .rank = 3, .store = store}), Contains("rank 3"));
  REQUIRE_THROWS_WITH(init_process_group({.backend = "glo", .world_size = 1, .rank = 0, .store = store}),
                      Contains("\"glo\"") && Contains("gloo"));
  REQUIRE_THROWS_WITH(
      init_process_group({.world_size = 1, .rank = 0, .store = store, .device_id = Device(DeviceType::kCUDA)}),
      Contains("cuda:0"));
  REQUIRE_THROWS_AS(init_process_group({.timeout = 0ms, .world_size = 1, .rank = 0, .store = store}), InvalidArgument);
  REQUIRE_THROWS_WITH(get_rank(), Contains("init_process_group"));
  REQUIRE_THROWS_AS(destroy_process_group(), InvalidArgument);
}

TEST_CASE("a second default group is refused") {
  World world;
  const World::Binding binding(world);
  init_process_group({.backend = "gloo", .world_size = 1, .rank = 0, .store = std::make_shared<HashStore>()});
  REQUIRE_THROWS_WITH(
      init_process_group({.backend = "gloo", .world_size = 1, .rank = 0, .store = std::make_shared<HashStore>()}),
      Catch::Contains("already"));
  REQUIRE(get_backend() == "gloo");
  REQUIRE(get_backend_config() == "cpu:gloo");
  destroy_process_group();
}

TEST_CASE("a backend string may pair devices with backends") {
  World world;
  const World::Binding binding(world);
  const auto attempt = [](const char* backend) {
    init_process_group({.backend = backend, .world_size = 1, .rank = 0, .store = std::make_shared<HashStore>()});
    destroy_process_group();
  };
  attempt("cpu:gloo");
  attempt("CPU:Gloo");
  attempt("");
  for (const auto* wrong : {"cpu:", ":gloo", "cpu:gloo,", "cpu:gloo:x", "cpu:gloo,cpu:gloo", "tpu:gloo", "cuda:gloo"}) {
    REQUIRE_THROWS_AS(attempt(wrong), InvalidArgument);
  }
}

TEST_CASE("each thread that binds a World has a rank of its own, and the process has none of them") {
  REQUIRE(run_ranks(2, [](int rank) { check(get_rank() == rank, "rank"); }) == all_well(2));
  REQUIRE_FALSE(is_initialized());
}
