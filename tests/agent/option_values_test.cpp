#include "agent/option_values.hpp"

#include "agent/usage_error.hpp"
#include "tests/support/catch.hpp"

#include <signal.h>

using namespace tensorplay::agent;
using namespace std::chrono_literals;

TEST_CASE("a stream selection takes one mask for all or local ranks of any number of digits") {
  CHECK(parse_streams("-r", "3").mask_for(7) == 3);
  const StreamSelection some = parse_streams("-r", "0:1,12:3,100:2");
  CHECK(some.mask_for(0) == kStdout);
  CHECK(some.mask_for(1) == 0);
  CHECK(some.mask_for(12) == 3);
  CHECK(some.mask_for(100) == kStderr);
  for (const char* bad : {"", "4", "-1", "x", "0:", ":1", "0:4", "0:1,", "0:1,2", "1:2:3", "-1:2"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_streams("-r", bad), UsageError);
  }
}

TEST_CASE("a number of nodes is N or MIN:MAX") {
  CHECK(parse_node_range("n", "4") == std::pair(4, 4));
  CHECK(parse_node_range("n", "1:4") == std::pair(1, 4));
  for (const char* bad : {"", "a", "0", "-1", "2:1", "1:2:3", "1:", ":2", "1.5", "99999999999999999999"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_node_range("n", bad), UsageError);
  }
}

TEST_CASE("a switch is a number as torchrun reads it, or a word") {
  for (const char* on : {"1", "2", "-1", "true", "Yes", "on"}) CHECK(parse_switch("s", on));
  for (const char* off : {"0", "false", "NO", "off"}) CHECK_FALSE(parse_switch("s", off));
  CHECK_THROWS_AS(parse_switch("s", ""), UsageError);
  CHECK_THROWS_AS(parse_switch("s", "maybe"), UsageError);
}

TEST_CASE("two commas stand for one in a filter") {
  CHECK(parse_filters("").empty());
  CHECK(parse_filters("a,b") == std::vector<std::string>{"a", "b"});
  CHECK(parse_filters("a,,b,c") == std::vector<std::string>{"a,b", "c"});
}

TEST_CASE("signals are taken by name or number and the impossible ones are skipped with a note") {
  std::vector<std::string> notes;
  CHECK(parse_signals("s", "SIGTERM,int,10,SIGTERM", notes) == std::vector<int>{SIGTERM, SIGINT, SIGUSR1});
  CHECK(notes.empty());
  CHECK(parse_signals("s", "SIGNOPE,SIGKILL,SIGCHLD,SIGHUP", notes) == std::vector<int>{SIGHUP});
  REQUIRE(notes.size() == 3);
  CHECK(notes[0] == "s: 'SIGNOPE' is no signal and is skipped; names look like SIGTERM");
}

TEST_CASE("rendezvous settings tolerate what real scripts hold, and say what they ignore") {
  std::vector<std::string> notes;
  const auto conf = parse_rdzv_conf("--rdzv-conf", " join_timeout = 60 , is_host=True,timeout=9,", notes);
  CHECK(conf == std::map<std::string, std::string>{{"is_host", "True"}, {"join_timeout", "60"}, {"timeout", "9"}});
  CHECK(notes.empty());
  CHECK(parse_rdzv_conf("--rdzv-conf", "join_timeuot=60,backend=c10d,a=b=c,timeout=1,timeout=2", notes).at("timeout") ==
        "2");
  CHECK(notes ==
        std::vector<std::string>{
            "--rdzv-conf: join_timeuot is no setting of a rendezvous and is ignored; did you mean join_timeout?",
            "--rdzv-conf: backend is ignored here; give --rdzv-backend",
            "--rdzv-conf: a is no setting of a rendezvous and is ignored",
            "--rdzv-conf: timeout is given twice; the last one counts"});
  CHECK_THROWS_AS(parse_rdzv_conf("c", "=1", notes), UsageError);
  CHECK_THROWS_AS(parse_rdzv_conf("c", "timeout=", notes), UsageError);
  CHECK_THROWS_AS(parse_rdzv_conf("c", "timeout", notes), UsageError);
}

TEST_CASE("seconds may have a fraction but no other text") {
  CHECK(parse_seconds("t", "2.5", 0) == 2500ms);
  CHECK(parse_seconds("t", "1e300", 0) > 1000h);
  for (const char* bad : {"", "x", "1x", "-1", "nan", "inf"}) CHECK_THROWS_AS(parse_seconds("t", bad, 0), UsageError);
}
