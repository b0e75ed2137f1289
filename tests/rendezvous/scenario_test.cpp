#include "tests/rendezvous/scenario.hpp"

#include "tests/support/catch.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace scenario = tensorplay::rendezvous::scenario;

namespace {

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(TP_SCENARIO_DIR)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

// TP_REWRITE_SCENARIOS=1 writes the new answers into the files: the diff is the review.
TEST_CASE("the membership core answers every scenario as its file says") {
  const char* flag = std::getenv("TP_REWRITE_SCENARIOS");
  const bool rewrites = flag != nullptr && std::string(flag) == "1";
  const auto files = scenario_files();
  REQUIRE(files.size() >= 25);
  for (const auto& file : files) {
    const auto expected = read(file);
    const auto got = scenario::replay(expected);
    INFO(file.filename().string());
    if (rewrites && got != expected) {
      std::ofstream(file, std::ios::binary) << got;
      std::cerr << "rewrote " << file.filename().string() << "\n";
    } else {
      CHECK(got == expected);
    }
  }
}

TEST_CASE("a scenario with a command that makes no sense is refused with the line") {
  REQUIRE_THROWS_WITH(scenario::replay("nodes 1:1\nfrobnicate a\n"), Catch::Contains("no such command"));
  REQUIRE_THROWS_WITH(scenario::replay("join a\n"), Catch::Contains("begins with 'nodes MIN:MAX'"));
  REQUIRE_THROWS_WITH(scenario::replay("nodes 1:1\njoin a colour=red\n"), Catch::Contains("colour=red"));
}
