#include "tensorplay/distributed.hpp"
#include "tests/support/rank_threads.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <vector>

using namespace tensorplay;
using namespace tensorplay::distributed;
using elastic::CheckpointFolder;
using elastic::NamedTensor;
using tensorplay::testing::run_ranks;
using tensorplay::testing::TemporaryDirectory;

namespace {

void save(const CheckpointFolder& folder, int step) {
  folder.save(step, {{"weights with a space", full({2, 3}, step).transpose(0, 1)},
                     {"count", tensor<std::int64_t>({7})},
                     {"nothing", zeros({0}, DType::kBFloat16)}});
}

std::filesystem::path file(const TemporaryDirectory& place, const char* name) {
  return std::filesystem::path(place.path()) / name;
}

}  // namespace

TEST_CASE("the newest checkpoint comes back as it was, and two are kept") {
  const TemporaryDirectory place;
  const CheckpointFolder folder(place.path() + "/made/for/it", {.config = {{"seed", "1"}}});
  REQUIRE_FALSE(folder.load().has_value());
  for (const int step : {5, 10, 1000}) save(folder, step);
  const auto loaded = folder.load();
  REQUIRE(loaded->step == 1000);
  REQUIRE(loaded->tensors.size() == 3);
  REQUIRE(equal(loaded->tensors.at("weights with a space"), full({3, 2}, 1000)));
  REQUIRE(equal(loaded->tensors.at("count"), tensor<std::int64_t>({7})));
  REQUIRE(loaded->tensors.at("nothing").dtype() == DType::kBFloat16);
  const auto entries = std::filesystem::directory_iterator(folder.path());
  REQUIRE(std::distance(begin(entries), end(entries)) == 2);
}

TEST_CASE("a damaged checkpoint is passed over for the one before it, wherever the damage is") {
  const TemporaryDirectory place;
  const CheckpointFolder folder(place.path());
  save(folder, 1);
  save(folder, 2);
  const auto newest = file(place, "step-000000002.ckpt");
  const auto size = std::filesystem::file_size(newest);
  for (std::uintmax_t cut = 0; cut < size; cut += 7) {
    save(folder, 2);
    std::filesystem::resize_file(newest, cut);
    REQUIRE(folder.load()->step == 1);
  }
  for (std::uintmax_t place_of_damage = 0; place_of_damage < size; ++place_of_damage) {
    save(folder, 2);
    {
      std::fstream content(newest, std::ios::in | std::ios::out | std::ios::binary);
      content.seekg(static_cast<std::streamoff>(place_of_damage));
      const auto flipped = static_cast<char>(content.get() ^ 1);
      content.seekp(static_cast<std::streamoff>(place_of_damage)).put(flipped);
    }
    REQUIRE(folder.load()->step == 1);
  }
}

TEST_CASE("what a killed writer left unfinished is not taken for a checkpoint") {
  const TemporaryDirectory place;
  const CheckpointFolder folder(place.path());
  save(folder, 3);
  std::ofstream(file(place, "step-000000004.ckpt.tmp")) << "half";
  REQUIRE(folder.load()->step == 3);
}

TEST_CASE("another configuration is refused by name") {
  const TemporaryDirectory place;
  save(CheckpointFolder(place.path(), {.config = {{"hidden", "32"}, {"seed", "1"}}}), 3);
  REQUIRE_THROWS_WITH(CheckpointFolder(place.path(), {.config = {{"hidden", "64"}, {"seed", "1"}}}).load(),
                      Catch::Contains("hidden=32, not 64") && Catch::Contains("give another folder"));
}

TEST_CASE("a temporary folder is the owner's alone, and goes with a good end") {
  const TemporaryDirectory place;
  const CheckpointFolder folder(place.path() + "/own", {.is_temporary = true});
  REQUIRE((std::filesystem::status(folder.path()).permissions() & std::filesystem::perms::all) ==
          std::filesystem::perms::owner_all);
  save(folder, 1);
  folder.remove();
  REQUIRE_FALSE(std::filesystem::exists(folder.path()));
}

TEST_CASE("a folder that cannot be made or written is one clear error") {
  REQUIRE_THROWS_WITH(CheckpointFolder("/proc/no/such"), Catch::Contains("/proc/no/such: cannot be made"));
}

TEST_CASE("all ranks go on from what rank 0 has") {
  const TemporaryDirectory place;
  const CheckpointFolder folder(place.path());
  const auto endings = run_ranks(2, [&](int rank) {
    const Tensor value = full({3}, rank + 1);
    const std::vector<NamedTensor> state = {{"value", value}};
    const auto* const own = rank == 0 ? &folder : nullptr;
    if (elastic::restore(own, state) != 0 || !equal(value, full({3}, 1))) throw std::runtime_error("nothing saved");
    if (rank == 0) folder.save(12, {{"value", full({3}, 5)}});
    if (elastic::restore(own, state) != 12 || !equal(value, full({3}, 5))) throw std::runtime_error("not restored");
  });
  REQUIRE(endings == testing::all_well(2));
}

TEST_CASE("a checkpoint that does not fit is an error on every rank, not a hang") {
  const TemporaryDirectory place;
  const CheckpointFolder folder(place.path());
  folder.save(1, {{"value", zeros({4})}});
  const auto endings = run_ranks(2, [&](int rank) {
    elastic::restore(rank == 0 ? &folder : nullptr, {{"value", zeros({3})}});
  });
  REQUIRE_THAT(endings[0], Catch::Contains("has \"value\" as float32 (4), not float32 (3)"));
  REQUIRE(endings[1] == "restore: rank 0 could not use its checkpoint");
}
