#include "runtime/elastic/crash_report.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <string>

using tensorplay::distributed::elastic::crash_report;

TEST_CASE("a crash report is JSON whatever is in its texts") {
  std::array<char, 1024> memory{};
  const auto size =
      crash_report(memory.data(), memory.size(), "a \"quoted\" \\ text", "line 1\nline 2\t\x01\xff", 12, 5);
  const auto json = nlohmann::json::parse(std::string(memory.data(), size));
  REQUIRE(json["message"]["message"] == "a \"quoted\" \\ text");
  REQUIRE(json["message"]["extraInfo"]["py_callstack"] == "line 1\nline 2???");
  REQUIRE(json["message"]["extraInfo"]["timestamp"] == "12");
  REQUIRE(json["message"]["extraInfo"]["thrown_at"] == 12.000005);
}

TEST_CASE("a call stack that does not fit is cut, and the report is still whole JSON") {
  const std::string long_text(5000, 'x');
  for (const std::size_t capacity : {300U, 301U, 1000U}) {
    std::string memory(capacity, '\0');
    const auto size = crash_report(memory.data(), capacity, "SIGSEGV", long_text.c_str(), 1, 999'999);
    REQUIRE(size < capacity);
    REQUIRE(nlohmann::json::parse(memory.substr(0, size))["message"]["message"] == "SIGSEGV");
  }
}
