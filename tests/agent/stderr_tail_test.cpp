#include "agent/stderr_tail.hpp"

#include "tests/support/catch.hpp"

using tensorplay::agent::quotable_lines;
using tensorplay::agent::StderrTail;

using Lines = std::vector<std::string>;

TEST_CASE("the last lines are quoted, oldest first") {
  CHECK(quotable_lines("a\nb\nc\n", 2, false) == Lines{"b", "c"});
  CHECK(quotable_lines("a\nb", 5, false) == Lines{"a", "b"});
  CHECK(quotable_lines("", 5, false).empty());
  CHECK(quotable_lines("a\n\n\n", 5, false) == Lines{"a"});
  CHECK(quotable_lines("\n", 0, false).empty());
}

TEST_CASE("a line whose start is missing is not quoted") {
  CHECK(quotable_lines("rest of it\nwhole\n", 5, true) == Lines{"whole"});
  CHECK(quotable_lines("only this", 5, true) == Lines{"only this"});
}

TEST_CASE("what a terminal would not print is gone") {
  CHECK(quotable_lines("\x1b[31mred\x1b[0m\n", 1, false) == Lines{"red"});
  CHECK(quotable_lines("10%\r100%\r\n", 1, false) == Lines{"100%"});
  CHECK(quotable_lines(std::string("a\x00\x07\xff"
                                   "b\n",
                                   6),
                       1, false) == Lines{"a?b"});
  CHECK(quotable_lines(std::string(10000, 'x'), 1, false).at(0).size() < 600);
}

TEST_CASE("a traceback longer than the tail keeps its head line and its exception") {
  std::string text = "noise\nTraceback (most recent call last):\n";
  for (int i = 0; i < 40; ++i) text += "  File \"t.py\", line " + std::to_string(i) + "\n";
  text += "ValueError: no data\n";
  const Lines lines = quotable_lines(text, 6, false);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0] == "Traceback (most recent call last):");
  CHECK(lines[1] == "  ... (37 lines)");
  CHECK(lines[5] == "ValueError: no data");
}

TEST_CASE("the tail keeps the end of a long stream in little memory") {
  StderrTail tail;
  for (int i = 0; i < 100000; ++i) tail.add("line " + std::to_string(i) + "\n");
  CHECK(tail.lines(2) == Lines{"line 99998", "line 99999"});
  tail.add(std::string(1 << 20, 'y') + "\nend\n");
  CHECK(tail.lines(1) == Lines{"end"});
}
