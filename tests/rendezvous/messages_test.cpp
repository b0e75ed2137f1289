#include "rendezvous/messages.hpp"

#include "tensorplay/distributed/errors.hpp"
#include "tests/support/catch.hpp"

#include <limits>

using namespace tensorplay::rendezvous;
using tensorplay::distributed::InvalidArgument;

namespace {

WorkerFailure full_failure() {
  WorkerFailure f;
  f.rank = 3;
  f.local_rank = 1;
  f.pid = 4711;
  f.host = "n2";
  f.signal = 11;
  f.stopped_by_us = true;
  f.out_of_memory = true;
  f.is_startup_failure = true;
  f.ended_at = 1234567.25;
  f.thrown_at = 1234566.5;
  f.runtime_seconds = 12.5;
  f.message = "ValueError: \"quoted\" \n and more";
  f.traceback = "File a.py";
  f.error_file = "/tmp/error.json";
  f.log_file = "/tmp/stderr.log";
  f.last_lines = {"one", "two"};
  f.followed_from = 2;
  return f;
}

}  // namespace

TEST_CASE("every report comes back as it was sent") {
  const std::vector<Report> reports = {
      Joined{"a", "n1", {"10.0.0.1", "fe80::1"}, 8, "trainer", 4, true, 29500},
      Joined{"a", "n1", {}, 1, "default", std::nullopt, false, 0},
      Joined{"a", "n1", {}, 1, "default", 0, false, 1, {{2, 7, 3, 1, 4, 2, 1, true}, {2, 8, 3, 1, 5}}, 3},
      Started{"a", 3},
      Stopped{"a", 3, {full_failure(), WorkerFailure{}}, true},
      Failed{"a", 3, full_failure()},
      Succeeded{"a", 7},
      Leaving{"a", "SIGTERM", false},
      Will{"a", 7.5, 1.25},
  };
  for (const auto& report : reports) REQUIRE(decode_report(encode(report)) == report);
}

TEST_CASE("every order comes back as it was sent") {
  StartOrder start{2,
                   1,
                   16,
                   1,
                   2,
                   8,
                   4,
                   12,
                   std::numeric_limits<std::uint64_t>::max(),
                   "10.0.0.1",
                   65535,
                   true,
                   {"10.0.0.1", "fe80::1%eth0"},
                   3,
                   1,
                   2,
                   true};
  FinishOrder finish{139, "rank 3 died", full_failure(), {full_failure()}, 12, 2, 1};
  const std::vector<Order> orders = {start,
                                     StopOrder{2, "b was lost"},
                                     StopOrder{2, "cut off", true},
                                     finish,
                                     FinishOrder{},
                                     NewsOrder{"1 of 2 nodes are here", true, false, 1.5, 600},
                                     ConfirmedOrder{3}};
  for (const auto& order : orders) REQUIRE(decode_order(encode(order)) == order);
}

TEST_CASE("a malformed message is refused, whatever is wrong with it") {
  const std::vector<std::string> bad = {
      "",
      "[]",
      "{",
      "null",
      R"({"agent":"a","round":1})",
      R"({"type":7,"agent":"a","round":1})",
      R"({"type":"start","agent":"a","round":1})",
      R"({"type":"succeeded","agent":"a"})",
      R"({"type":"succeeded","agent":1,"round":1})",
      R"({"type":"succeeded","agent":"a","round":"1"})",
      R"({"type":"succeeded","agent":"a","round":1.5})",
      R"({"type":"succeeded","agent":"a","round":99999999999})",
      R"({"type":"succeeded","agent":"a","round":-99999999999})",
      R"({"type":"succeeded","agent":"a","round":1,"extra":0})",
      R"({"type":"leaving","agent":"a","why":"","workers_gone":1})",
  };
  for (const auto& text : bad) {
    CAPTURE(text);
    REQUIRE_THROWS_AS(decode_report(text), InvalidArgument);
  }
  REQUIRE_THROWS_AS(decode_order(encode(Report(Succeeded{"a", 1}))), InvalidArgument);
}

TEST_CASE("a port below zero or above 65535 is refused") {
  auto text = encode(Report(Joined{"a", "n1", {}, 1, "default", std::nullopt, false, 29500}));
  const auto with_port = [&](const std::string& port) {
    auto copy = text;
    return copy.replace(copy.find("29500"), 5, port);
  };
  REQUIRE_NOTHROW(decode_report(with_port("65535")));
  REQUIRE_THROWS_AS(decode_report(with_port("65536")), InvalidArgument);
  REQUIRE_THROWS_AS(decode_report(with_port("-1")), InvalidArgument);
}

TEST_CASE(
    "a worker's last lines that are not UTF-8 and a time that is no number do not keep the report from going out") {
  auto failure = full_failure();
  failure.last_lines = {"\xff\xfe binary"};
  failure.runtime_seconds = std::numeric_limits<double>::quiet_NaN();
  const auto back = std::get<Failed>(decode_report(encode(Report(Failed{"a", 0, failure}))));
  REQUIRE(back.failure.last_lines.at(0).find("binary") != std::string::npos);
  REQUIRE(back.failure.runtime_seconds == 0);
}

TEST_CASE("an agent that joins anew has the next name of the same process") {
  const AgentId first = "n1.cluster_4711_0badcafe";
  CHECK(session_of(first) == 1);
  CHECK(next_session(first) == first + "#2");
  CHECK(next_session(next_session(first)) == first + "#3");
  CHECK(process_of(first + "#12") == first);
  CHECK(session_of(first + "#12") == 12);
}
