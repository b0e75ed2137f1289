#include "agent/terminal_screen.hpp"

#include "agent/terminal_text.hpp"
#include "tests/support/catch.hpp"

using tensorplay::agent::columns_of;
using tensorplay::agent::cut_to_columns;
using tensorplay::agent::TerminalScreen;

namespace {
const std::string kWipe = "\r\x1b[K";
}

TEST_CASE("lines scroll above a bar that stays at the bottom") {
  TerminalScreen screen;
  std::string out;
  screen.in_place(0, "10%", out);
  CHECK(out == "10%");
  out.clear();
  screen.lines(2, "hello\n", out);
  CHECK(out == kWipe + "hello\n10%");
  out.clear();
  screen.in_place(0, "20%", out);
  CHECK(out == kWipe + "20%");
}

TEST_CASE("a bar that ends as a line does not come back") {
  TerminalScreen screen;
  std::string out;
  screen.in_place(0, "99%", out);
  out.clear();
  screen.lines(0, "100%\n", out);
  CHECK(out == kWipe + "100%\n");
  out.clear();
  screen.lines(1, "next\n", out);
  CHECK(out == "next\n");
}

TEST_CASE("of several bars the lowest is shown, with the number of the others") {
  TerminalScreen screen;
  std::string out;
  screen.in_place(4, "rank 2", out);
  out.clear();
  screen.in_place(0, "rank 0", out);
  CHECK(out == kWipe + "rank 0 (+1)");
  out.clear();
  screen.in_place(0, "", out);
  CHECK(out == kWipe + "rank 2");
}

TEST_CASE("a bar is cut to the terminal's width, so that it can be wiped") {
  TerminalScreen screen;
  screen.set_width(10);
  std::string out;
  screen.in_place(0, "0123456789abc", out);
  CHECK(out == "012345678");
}

TEST_CASE("cutting counts columns, not bytes") {
  CHECK(cut_to_columns("\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88", 2) == "\xe2\x96\x88\xe2\x96\x88");
  CHECK(cut_to_columns("\xe4\xb8\xad\xe6\x96\x87", 3) == "\xe4\xb8\xad");
  CHECK(cut_to_columns("\x1b[31mred\x1b[0m", 2) == "\x1b[31mre\x1b[0m");
  CHECK(cut_to_columns("abc", 5) == "abc");
  CHECK(cut_to_columns("a\tb\x01"
                       "c",
                       5) == "a bc");
  CHECK(columns_of("\x1b[1mab\xe4\xb8\xad") == 4);
}
