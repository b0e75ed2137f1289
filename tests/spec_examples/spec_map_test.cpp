/// docs/spec-map.md tells the truth: each header has the name, each test uses it, and no cell is empty.
#include "tests/support/source_files.hpp"

#include <catch2/catch.hpp>

#include <sstream>
#include <string>
#include <vector>

using tensorplay::tests::source_file;

namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" `");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" `") - first + 1);
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) cells.push_back(trimmed(cell));
  return cells;
}

/// "dist::Backend::register_backend(...)" -> "register_backend"
std::string last_name(std::string name) {
  name = name.substr(0, name.find_first_of("({"));
  const auto colons = name.rfind("::");
  return colons == std::string::npos ? name : name.substr(colons + 2);
}

}  // namespace

TEST_CASE("the map of the specification's names has no empty cell, and what it points to is there") {
  std::istringstream map(source_file("docs/spec-map.md"));
  int rows = 0;
  for (std::string line; std::getline(map, line);) {
    if (!line.starts_with("| `")) continue;
    ++rows;
    const auto cells = cells_of(line);
    INFO(line);
    REQUIRE(cells.size() >= 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK_FALSE(cells[i].empty());
    const auto& header = cells[1];
    if (header.find(".hpp") == std::string::npos) continue;  // Said in words: not offered, needs a GPU, ...
    const auto name = last_name(cells[2]);
    CHECK(source_file("include/tensorplay/" + header).find(name) != std::string::npos);
    CHECK(source_file("tests/" + cells[3]).find(name) != std::string::npos);
  }
  REQUIRE(rows > 80);
}
