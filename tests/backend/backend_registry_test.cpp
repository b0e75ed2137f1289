/// Backends of third parties: registered in process, brought in by shared objects, and what each backend can do.
#include "tests/support/capability_walk.hpp"
#include "tests/support/rank_checks.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <atomic>

using namespace tensorplay;
using namespace tensorplay::distributed;
using namespace tensorplay::testing;
using Catch::Contains;

namespace {

Endings run_on(const std::string& backend, int size, const std::function<void(int)>& body) {
  auto store = std::make_shared<HashStore>();
  return run_threads(size, [&](int rank) {
    init_process_group(
        {.backend = backend, .timeout = std::chrono::seconds(60), .world_size = size, .rank = rank, .store = store});
    body(rank);
    destroy_process_group();
  });
}

/// A backend that can nothing but a barrier.
class BarrierOnly final : public Backend {
 public:
  explicit BarrierOnly(BackendOptions options) : Backend(std::move(options)) {}
  std::string name() const override { return "barrier_only"; }
  WorkPtr barrier(const CallOptions&) override {
    options().store->barrier("b" + std::to_string(barriers_++), size());
    auto work = std::make_shared<Work>("barrier", 0);
    work->finish({});
    return work;
  }

 private:
  int barriers_ = 0;
};

/// A whole group that counts how often it is asked for a backend.
class CountingGroup final : public ProcessGroup {
 public:
  explicit CountingGroup(const BackendOptions& options) : ProcessGroup(options) {
    set_backend(DeviceType::kCPU, std::make_shared<BarrierOnly>(options));
  }
  Backend& backend_for(DeviceType device) const override {
    ++asked;
    return ProcessGroup::backend_for(device);
  }
  mutable std::atomic<int> asked{0};
};

BackendTraits cpu_traits() {
  BackendTraits traits;
  traits.devices = {DeviceType::kCPU};
  traits.operations = {OpType::BARRIER};
  return traits;
}

}  // namespace

TEST_CASE("a backend that is registered in process is used like any other, in any case of its name") {
  Backend::register_backend(
      "Barrier_Only", [](const BackendOptions& options) { return std::make_shared<BarrierOnly>(options); }, true);
  REQUIRE(is_backend_available("barrier_only"));
  REQUIRE(run_on("BARRIER_ONLY", 2, [](int) {
            check(get_backend_config() == "cpu:barrier_only", "config");
            barrier();
          }) == all_well(2));
}

TEST_CASE("the short form of a creator gets store, rank, size and timeout") {
  Backend::register_backend(
      "short", [](const std::shared_ptr<Store>& store, int rank, int size, std::chrono::milliseconds timeout) {
        return std::make_shared<BarrierOnly>(
            BackendOptions{.store = store, .rank = rank, .size = size, .timeout = timeout});
      });
  REQUIRE(run_on("cpu:short", 2, [](int) { barrier(); }) == all_well(2));
  REQUIRE_THROWS_WITH(Backend::register_backend(
                          "short", [](const BackendOptions&) { return nullptr; }, false),
                      Contains("extended_api has to be true"));
  REQUIRE_THROWS_AS(Backend::register_backend(
                        "a:b", [](const BackendOptions&) { return nullptr; }, true),
                    InvalidArgument);
}

TEST_CASE("a creator may bring a whole group") {
  Backend::register_backend(
      "counting", [](const BackendOptions& options) { return std::make_shared<CountingGroup>(options); }, cpu_traits());
  REQUIRE(run_on("counting", 2, [](int rank) {
            barrier();
            const auto group = std::dynamic_pointer_cast<CountingGroup>(get_default_group());
            check(group != nullptr && group->asked > 0, "it is the group");
            check(get_rank() == rank && get_backend() == "counting", "rank and name");
            const auto part = new_group({.ranks = {0, 1}});
            barrier({.group = part});
          }) == all_well(2));
}

TEST_CASE("a creator that returns nothing says that this rank is no member") {
  Backend::register_backend(
      "nobody", [](const BackendOptions&) { return nullptr; }, true);
  const auto endings = run_on("nobody", 1, [](int) {});
  REQUIRE_THAT(endings[0], Contains("no member"));
}

TEST_CASE("a plug-in is loaded by a call, once, and its backend carries a group, also in DETAIL") {
  load_backend_plugin(TP_RELAY_PLUGIN);
  load_backend_plugin(TP_RELAY_PLUGIN);
  REQUIRE(run_on("relay", 3, [](int) { walk_capabilities("relay"); }) == all_well(3));
  set_debug_level(DebugLevel::DETAIL);
  const auto endings = run_on("relay", 2, [](int rank) {
    walk_capabilities("relay");
    const auto text = error_of([&] { all_reduce(ones({1 + rank})); });
    check(text.find("rank 1 calls all_reduce of 2 float32") != std::string::npos, text);
  });
  set_debug_level(DebugLevel::OFF);
  REQUIRE(endings == all_well(2));
}

TEST_CASE("a plug-in that cannot be used says why") {
  REQUIRE_THROWS_WITH(load_backend_plugin("/nowhere/plugin.so"), Contains("/nowhere/plugin.so"));
  REQUIRE_THROWS_WITH(load_backend_plugin(TP_SILENT_PLUGIN), Contains("registers no backend"));
  REQUIRE_THROWS_WITH(load_backend_plugin(TP_STALE_PLUGIN), Contains("ABI version 2") && Contains("build it again"));
  REQUIRE_FALSE(is_backend_available("stale"));
}

TEST_CASE("every yes of the capability table works, every no is refused") {
  REQUIRE(run_on("gloo", 3, [](int) { walk_capabilities("gloo"); }) == all_well(3));
}

TEST_CASE("the capability table has a row for each operation and a column for each backend") {
  const auto table = capability_table();
  for (const auto type : all_op_types()) REQUIRE_THAT(table, Contains("| " + std::string(to_string(type)) + " |"));
  for (const auto& name : available_backends()) REQUIRE_THAT(table, Contains(name + " CPU"));
  REQUIRE_THAT(table, Contains("| monitored_barrier |"));
}
