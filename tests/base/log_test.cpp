#include "runtime/base/log.hpp"

#include "tests/support/catch.hpp"

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
namespace base = tensorplay::base;

namespace {

/// Collects lines while it lives, then gives stderr back.
class Capture {
 public:
  explicit Capture(base::log::Level level, std::string program = "tprun") {
    base::log::configure({.level = level,
                          .program = std::move(program),
                          .sink = [this](base::log::Level, std::string_view line) { lines.emplace_back(line); }});
  }
  ~Capture() { base::log::configure({}); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::vector<std::string> lines;
};

}  // namespace

TEST_CASE("a line starts with the program's name and has no newline of its own") {
  Capture capture(base::log::Level::kInfo);
  base::log::info("job7: 100% of 4 nodes are here");
  REQUIRE(capture.lines == std::vector<std::string>{"tprun: job7: 100% of 4 nodes are here"});
}

TEST_CASE("a message below the level is not even made") {
  Capture capture(base::log::Level::kWarning);
  bool made = false;
  base::log::info([&] {
    made = true;
    return std::string("costly");
  });
  REQUIRE_FALSE(made);
  base::log::warning([] { return std::string("shown"); });
  REQUIRE(capture.lines == std::vector<std::string>{"tprun: shown"});
}

TEST_CASE("level off shows nothing at all") {
  Capture capture(base::log::Level::kOff);
  base::log::error("no");
  REQUIRE(capture.lines.empty());
}

TEST_CASE("a library without a program's name says level and time") {
  Capture capture(base::log::Level::kWarning, "");
  base::log::warning("slow");
  REQUIRE(capture.lines.size() == 1);
  REQUIRE_THAT(capture.lines[0], Catch::Matchers::StartsWith("[W ") && Catch::Matchers::EndsWith("] slow"));
}

TEST_CASE("torch's level names and digits are understood in any case") {
  REQUIRE(base::log::parse_level("info") == base::log::Level::kInfo);
  REQUIRE(base::log::parse_level("0") == base::log::Level::kInfo);
  REQUIRE(base::log::parse_level("WARNING") == base::log::Level::kWarning);
  REQUIRE(base::log::parse_level("2") == base::log::Level::kError);
  REQUIRE(base::log::parse_level("FATAL") == base::log::Level::kOff);
  REQUIRE_FALSE(base::log::parse_level("loud").has_value());
}

TEST_CASE("one key passes once an interval and then says how many were held back") {
  base::log::RateLimiter limiter(30s);
  const base::log::RateLimiter::TimePoint start{1h};
  REQUIRE(limiter.admit("n3", start) == 0u);
  REQUIRE_FALSE(limiter.admit("n3", start + 1s).has_value());
  REQUIRE_FALSE(limiter.admit("n3", start + 29s).has_value());
  REQUIRE(limiter.admit("n4", start + 2s) == 0u);
  REQUIRE(limiter.admit("n3", start + 30s) == 2u);
}

TEST_CASE("a flood of distinct keys does not grow the rate limiter's memory without bound") {
  base::log::RateLimiter limiter(30s);
  const base::log::RateLimiter::TimePoint start{1h};
  for (int i = 0; i < 100'000; ++i) REQUIRE(limiter.admit("key" + std::to_string(i), start).has_value());
}

TEST_CASE("lines of many threads are never mixed") {
  Capture capture(base::log::Level::kInfo);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 200; ++i) base::log::info(std::string(50, static_cast<char>('a' + t)));
      });
    }
  }
  REQUIRE(capture.lines.size() == 800);
  for (const auto& line : capture.lines) {
    REQUIRE(line.size() == 57);
    REQUIRE(line.find_first_not_of(line[7], 7) == std::string::npos);
  }
}

TEST_CASE("the level comes from the environment, the house's own name first") {
  ::setenv("TORCH_CPP_LOG_LEVEL", "ERROR", 1);
  REQUIRE(base::log::level_from_environment() == base::log::Level::kError);
  ::setenv("TP_CPP_LOG_LEVEL", "INFO", 1);
  REQUIRE(base::log::level_from_environment() == base::log::Level::kInfo);
  ::setenv("TP_CPP_LOG_LEVEL", "loud", 1);
  REQUIRE(base::log::level_from_environment() == base::log::Level::kWarning);
  ::unsetenv("TP_CPP_LOG_LEVEL");
  ::unsetenv("TORCH_CPP_LOG_LEVEL");
}

TEST_CASE("the two variables together mean what they mean in c10d") {
  using base::log::effective_level;
  using base::log::Level;
  for (const char* debug : {"", "OFF", "INFO", "DETAIL"}) {
    REQUIRE(effective_level("ERROR", debug) == Level::kError);
    REQUIRE(effective_level("3", debug) == Level::kOff);
    REQUIRE(effective_level("warning", debug) == Level::kWarning);
    REQUIRE(effective_level(std::nullopt, debug) == Level::kWarning);
    REQUIRE(effective_level("loud", debug) == Level::kWarning);
  }
  REQUIRE(effective_level("INFO", std::nullopt) == Level::kInfo);
  REQUIRE(effective_level("0", "OFF") == Level::kInfo);
  REQUIRE(effective_level("info", "Info") == Level::kDebug);
  REQUIRE(effective_level("INFO", "DETAIL") == Level::kTrace);
}
