#include "agent/line_assembly.hpp"

#include "tests/support/catch.hpp"

#include <random>
#include <string>
#include <vector>

using tensorplay::agent::expand_prefix;
using tensorplay::agent::LineAssembly;
using tensorplay::agent::PrefixValues;

namespace {

std::string assembled(const std::vector<std::string>& pieces, std::size_t longest = LineAssembly::kLongestLine) {
  LineAssembly assembly("[0]:", longest);
  std::string lines;
  for (const auto& piece : pieces) assembly.feed(piece, lines);
  assembly.finish(lines);
  return lines;
}

}  // namespace

TEST_CASE("every line gets the prefix, whole") {
  CHECK(assembled({"a\nb\n"}) == "[0]:a\n[0]:b\n");
  CHECK(assembled({"a", "b", "\n"}) == "[0]:ab\n");
  CHECK(assembled({"\n\n"}) == "[0]:\n[0]:\n");
  CHECK(assembled({}).empty());
}

TEST_CASE("a line without its newline at the end is written once, with one prefix") {
  CHECK(assembled({"a", "b"}) == "[0]:ab\n");
  CHECK(assembled({"x\nlast"}) == "[0]:x\n[0]:last\n");
}

TEST_CASE("a progress bar becomes its last refresh") {
  CHECK(assembled({"\r 0%\r 50%\r100%\n"}) == "[0]:100%\n");
  CHECK(assembled({"0%\r", "50%\r", "100%\r"}) == "[0]:100%\n");
  CHECK(assembled({"0%\r", "100%\r\n", "next\n"}) == "[0]:100%\r\n[0]:next\n");
  CHECK(assembled({"100%\r\r\n"}) == "[0]:100%\n");
}

TEST_CASE("a bar that wipes itself leaves the next line alone") {
  CHECK(assembled({"\r100%|####|", "\r          \r", "epoch 1\n"}) == "[0]:epoch 1\n");
}

TEST_CASE("a line that ends with carriage return and newline is a line") {
  CHECK(assembled({"a\r\nb\r\n"}) == "[0]:a\r\n[0]:b\r\n");
  CHECK(assembled({"a\r", "\nb\r", "\n"}) == "[0]:a\r\n[0]:b\r\n");
  CHECK(assembled({"\r\n"}) == "[0]:\r\n");
}

TEST_CASE("bytes that are no text keep their carriage returns") {
  const std::string binary("\x00\x01\r\xff\xfe\rend", 10);
  CHECK(assembled({binary + "\n"}) == "[0]:" + binary + "\n");
  CHECK(assembled({binary}) == "[0]:" + binary + "\n");
  CHECK(assembled({binary + "\r"}) == "[0]:" + binary + "\r\n");
}

TEST_CASE("colours and UTF-8 come through") {
  CHECK(assembled({"\x1b[31mred\x1b[0m\n"}) == "[0]:\x1b[31mred\x1b[0m\n");
  CHECK(assembled({"\xe2\x96", "\x88 50%\r\xe2\x96\x88\xe2\x96\x88 100%\n"}) == "[0]:\xe2\x96\x88\xe2\x96\x88 100%\n");
}

TEST_CASE("a line of megabytes stays one line") {
  const std::string line(3 << 20, 'x');
  CHECK(assembled({line.substr(0, 1000), line.substr(1000) + "\n"}) == "[0]:" + line + "\n");
}

TEST_CASE("a line longer than the longest is broken without losing a byte") {
  CHECK(assembled({"abcdefgh\nij\n"}, 3) == "[0]:abc\n[0]:def\n[0]:gh\n[0]:ij\n");
  CHECK(assembled({"abc\n"}, 3) == "[0]:abc\n");
}

TEST_CASE("the unfinished line shows the newest refresh") {
  LineAssembly assembly("p");
  std::string lines;
  assembly.feed("\r10%", lines);
  CHECK(assembly.unfinished() == "10%");
  assembly.feed("\r", lines);
  CHECK(assembly.unfinished() == "10%");
  assembly.feed("20%\r", lines);
  CHECK(assembly.unfinished() == "20%");
  assembly.feed("   ", lines);
  CHECK(assembly.unfinished().empty());
  CHECK(lines.empty());
}

TEST_CASE("however the bytes are cut, the lines are the same") {
  std::mt19937 random(7);
  const std::string alphabet("ab \n\r\x00\xff\x1b%", 9);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    const std::size_t size = random() % 60;
    // Few control bytes in half of the rounds, so that there are progress bars among them as well as binary.
    const std::size_t letters = round % 2 == 0 ? 5 : alphabet.size();
    while (bytes.size() < size) bytes += alphabet[random() % letters];
    const std::size_t longest = round % 3 == 0 ? 5 : 1000;
    const std::string whole = assembled({bytes}, longest);
    std::vector<std::string> pieces;
    for (std::size_t i = 0; i < bytes.size();) {
      const std::size_t length = 1 + random() % 7;
      pieces.push_back(bytes.substr(i, length));
      i += length;
    }
    REQUIRE(assembled(pieces, longest) == whole);
  }
}

TEST_CASE("without carriage returns not a byte is lost or added but prefixes") {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    for (std::size_t size = random() % 200; bytes.size() < size;) {
      const char c = static_cast<char>(random() % 8 == 0 ? '\n' : random() % 256);
      if (c != '\r') bytes += c;
    }
    std::string expected;
    for (std::size_t start = 0; start < bytes.size();) {
      const std::size_t newline = std::min(bytes.find('\n', start), bytes.size());
      expected += "[0]:" + bytes.substr(start, newline - start) + "\n";
      start = newline + 1;
    }
    REQUIRE(assembled({bytes}) == expected);
  }
}

TEST_CASE("the prefix template's macros are replaced and everything else is left alone") {
  const PrefixValues values{"trainer", 12, 3, "node7"};
  CHECK(expand_prefix("", values) == "[trainer3]:");
  CHECK(expand_prefix("${role_name} ${rank} ${local_rank} ${hostname}|", values) == "trainer 12 3 node7|");
  CHECK(expand_prefix("$rank/$local_rank ", values) == "12/3 ");
  CHECK(expand_prefix("${time} $x $ ${rank $$ ${}", values) == "${time} $x $ ${rank $ ${}");
  CHECK(expand_prefix("$rank_x ", values) == "$rank_x ");
}
