#include "agent/console.hpp"

#include "tests/support/catch.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace tensorplay::agent;
using namespace std::chrono_literals;
using tensorplay::base::UniqueFd;

namespace {

/// What a console that is a file was given, once it is gone.
std::string said(const std::function<void(Console&)>& speak) {
  std::string path = std::filesystem::temp_directory_path() / "console_test_XXXXXX";
  const UniqueFd file(::mkstemp(path.data()));
  REQUIRE(file);
  {
    Console console(file.get(), file.get());
    speak(console);
  }
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  return text.str();
}

}  // namespace

TEST_CASE("levels have torchrun's names and numbers") {
  CHECK(parse_chatter("info") == Chatter::kInfo);
  CHECK(parse_chatter("WARN") == Chatter::kWarning);
  CHECK(parse_chatter("CRITICAL") == Chatter::kError);
  CHECK(parse_chatter("10") == Chatter::kDebug);
  CHECK(parse_chatter("30") == Chatter::kWarning);
  CHECK_FALSE(parse_chatter("zz"));
  CHECK_FALSE(parse_chatter("1x"));
  CHECK_FALSE(parse_chatter(""));
}

TEST_CASE("warnings are shown by default and chatter is not") {
  CHECK(said([](Console& console) {
          console.say("always");
          console.say(Chatter::kInfo, "chatter");
          console.say(Chatter::kWarning, "warning");
        }) == "tprun: always\ntprun: warning\n");
}

TEST_CASE("LOGLEVEL chooses, and one that names no level is told") {
  ::setenv("LOGLEVEL", "INFO", 1);
  CHECK(said([](Console& console) { console.say(Chatter::kInfo, "chatter"); }) == "tprun: chatter\n");
  ::setenv("LOGLEVEL", "loud", 1);
  CHECK(said([](Console& console) { console.say(Chatter::kInfo, "chatter"); }) ==
        "tprun: LOGLEVEL=loud: no such level; DEBUG, INFO, WARNING and ERROR are\n");
  ::unsetenv("LOGLEVEL");
}

TEST_CASE("in a log the status is a line when something changes, not when the clock does") {
  CHECK(said([](Console& console) {
          console.status("3 of 4 nodes are here", "(1 s of 600 s)");
          console.status("3 of 4 nodes are here", "(2 s of 600 s)");
          console.status("4 of 4 nodes are here", "(3 s of 600 s)");
          console.clear_status();
        }) == "tprun: 3 of 4 nodes are here\ntprun: 4 of 4 nodes are here\n");
}

TEST_CASE("a report is printed as it is, whole lines") {
  CHECK(said([](Console& console) {
          console.print("one\n  two");
          console.line_taker()("three");
        }) == "one\n  two\nthree\n");
}
