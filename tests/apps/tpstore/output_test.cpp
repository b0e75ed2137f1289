#include "apps/tpstore/output.hpp"

#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace tpstore;
using namespace std::string_literals;

TEST_CASE("text stays as it is, and other bytes are escaped so that a terminal is safe") {
  REQUIRE(as_text("größe\n") == "größe\n");
  REQUIRE(as_text("\x1b[2Jgone"s) == "\\x1b[2Jgone");
  REQUIRE(as_text("a\0b"s) == "a\\x00b");
  REQUIRE(as_text("\xff") == "\\xff");
}

TEST_CASE("what is not UTF-8 is not taken for it") {
  for (const auto& bytes : {"\xc0\xaf"s, "\xed\xa0\x80"s, "\xf5\x80\x80\x80"s, "\xe2\x82"s, "\x80"s}) {
    REQUIRE_FALSE(is_readable(bytes));
  }
  REQUIRE(is_readable("€ 𝄞"));
}

TEST_CASE("a preview is one line of bounded width") {
  REQUIRE(as_preview("two\nlines", 20) == "two\\nlines");
  REQUIRE(as_preview("0123456789abc", 10) == "0123456789...");
  REQUIRE(as_preview("ééééé", 3) == "ééé...");
  REQUIRE(as_preview("\0\0\0"s, 8) == "\\x00\\x00...");
}

TEST_CASE("JSON carries any bytes") {
  REQUIRE(as_json("plain").dump() == "\"plain\"");
  REQUIRE(as_json("\0"s).dump() == R"({"base64":"AA=="})");
  REQUIRE(as_json("\0\xff"s).dump() == R"({"base64":"AP8="})");
  REQUIRE(as_json("\0\xff\x10"s).dump() == R"({"base64":"AP8Q"})");
}
