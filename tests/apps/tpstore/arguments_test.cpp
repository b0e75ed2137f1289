#include "apps/tpstore/arguments.hpp"

#include "tests/support/catch.hpp"

using namespace tpstore;
using namespace std::chrono_literals;

TEST_CASE("options may stand anywhere, with their value in the same word or the next") {
  const auto arguments = parse_arguments({"--endpoint=n1:29500", "get", "-t", "0.5", "k", "--json", "--wait"});
  REQUIRE(arguments.command == "get");
  REQUIRE(arguments.operands == std::vector<std::string>{"k"});
  REQUIRE(arguments.endpoint == "n1:29500");
  REQUIRE(arguments.timeout == 500ms);
  REQUIRE(arguments.format == Format::kJson);
  REQUIRE(arguments.waits);
}

TEST_CASE("a dash, a negative number and whatever follows two dashes are words, not options") {
  REQUIRE(parse_arguments({"set", "k", "-"}).operands[1] == "-");
  REQUIRE(parse_arguments({"add", "k", "-3"}).operands[1] == "-3");
  REQUIRE(parse_arguments({"set", "--", "--json", "-t"}).operands == std::vector<std::string>{"--json", "-t"});
  REQUIRE(parse_arguments({"set", "", ""}).operands == std::vector<std::string>{"", ""});
}

TEST_CASE("a mistake is told in one line that says what would be right") {
  const auto complaint = [](const std::vector<std::string>& words) {
    try {
      parse_arguments(words);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  REQUIRE(complaint({}) == "no command given; tpstore --help lists them");
  REQUIRE(complaint({"lst"}) == "lst: no such command; did you mean list?");
  REQUIRE(complaint({"pop", "q"}) == "pop: no such command; did you mean queue-pop?");
  REQUIRE(complaint({"frobnicate"}) == "frobnicate: no such command; tpstore --help lists them");
  REQUIRE(complaint({"get", "k", "--timout", "3"}) == "--timout: no such option; did you mean --timeout?");
  REQUIRE(complaint({"get"}) == "get: too few words; say tpstore get KEY");
  REQUIRE(complaint({"get", "a", "b"}) == "get: b is one word too many; say tpstore get KEY");
  REQUIRE(complaint({"get", "a", "--timeout"}) == "--timeout: needs a value after it");
  REQUIRE(complaint({"get", "a", "--timeout", "soon"}) == "--timeout=soon: not a time; give seconds, such as 5 or 0.5");
  REQUIRE(complaint({"get", "a", "--timeout=-1"}) == "--timeout=-1: not a time; give seconds, such as 5 or 0.5");
  REQUIRE(complaint({"get", "a", "--output=xml"}) == "--output=xml: no such format; give text, raw or json");
  REQUIRE(complaint({"get", "a", "--json=yes"}) == "--json: takes no value, got yes");
  REQUIRE(complaint({"serve", "--port", "70000"}) ==
          "--port=70000: not a port; give a number from 0 (any free one) to 65535");
}
