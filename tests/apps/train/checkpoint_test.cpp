#include "apps/train/checkpoint.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <random>
#include <unistd.h>
#include <vector>

using train::CheckpointFolder;

namespace {

struct TemporaryFolder {
  std::filesystem::path path =
      "/tmp/tp_checkpoint_test_" + std::to_string(::getpid()) + "_" + std::to_string(std::random_device{}());
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

void save(const CheckpointFolder& folder, int step) {
  std::vector<float> values = {static_cast<float>(step), 2, 3};
  std::vector<float> more = {4};
  const std::span<float> parts[] = {values, more};
  folder.save(step, parts);
}

}  // namespace

TEST_CASE("the newest checkpoint comes back as it was, and two are kept") {
  const TemporaryFolder place;
  const CheckpointFolder folder(place.path, {{"seed", "1"}}, false);
  REQUIRE_FALSE(folder.load().has_value());
  for (const int step : {5, 10, 1000}) save(folder, step);
  const auto loaded = folder.load();
  REQUIRE(loaded->step == 1000);
  REQUIRE(loaded->values == std::vector<float>{1000, 2, 3, 4});
  const auto entries = std::filesystem::directory_iterator(place.path);
  REQUIRE(std::distance(begin(entries), end(entries)) == 2);
}

TEST_CASE("a damaged checkpoint is passed over for the one before it, wherever the damage is") {
  const TemporaryFolder place;
  const CheckpointFolder folder(place.path, {{"seed", "1"}}, false);
  save(folder, 1);
  save(folder, 2);
  const auto newest = place.path / "step-000000002.ckpt";
  const auto size = std::filesystem::file_size(newest);
  for (const std::uintmax_t cut : {std::uintmax_t{0}, std::uintmax_t{10}, size / 2, size - 1}) {
    save(folder, 2);
    std::filesystem::resize_file(newest, cut);
    REQUIRE(folder.load()->step == 1);
  }
  save(folder, 2);
  std::fstream(newest, std::ios::in | std::ios::out | std::ios::binary).seekp(static_cast<std::streamoff>(size / 2))
      << '~';
  REQUIRE(folder.load()->step == 1);
}

TEST_CASE("what a killed writer left unfinished is not taken for a checkpoint") {
  const TemporaryFolder place;
  const CheckpointFolder folder(place.path, {}, false);
  save(folder, 3);
  std::ofstream(place.path / "step-000000004.ckpt.tmp") << "half";
  REQUIRE(folder.load()->step == 3);
}

TEST_CASE("another configuration is refused by name") {
  const TemporaryFolder place;
  save(CheckpointFolder(place.path, {{"hidden", "32"}, {"seed", "1"}}, false), 3);
  REQUIRE_THROWS_WITH(CheckpointFolder(place.path, {{"hidden", "64"}, {"seed", "1"}}, false).load(),
                      Catch::Contains("hidden=32, not 64") && Catch::Contains("--checkpoint-dir"));
}

TEST_CASE("a temporary folder is the owner's alone, and goes with a good end") {
  const TemporaryFolder place;
  const CheckpointFolder folder(place.path, {}, true);
  REQUIRE((std::filesystem::status(place.path).permissions() & std::filesystem::perms::all) ==
          std::filesystem::perms::owner_all);
  save(folder, 1);
  folder.remove();
  REQUIRE_FALSE(std::filesystem::exists(place.path));
}
