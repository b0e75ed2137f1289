#include "agent/run_report.hpp"

#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

#include <csignal>

using namespace tensorplay::agent;
using nlohmann::json;
using tensorplay::rendezvous::FinishOrder;
using tensorplay::rendezvous::WorkerFailure;

namespace {

RunReport failed_run() {
  RunReport report;
  report.run_id = "job7";
  report.program = "train";
  report.exit_code = 139;
  WorkerFailure root;
  root.rank = 2;
  root.host = "n2";
  root.signal = SIGSEGV;
  FinishOrder finish;
  finish.exit_code = 139;
  finish.root_cause = root;
  finish.failures = {root};
  report.finish = finish;
  return report;
}

}  // namespace

TEST_CASE("the report says whose exit code tprun's is") {
  RunReport report;
  CHECK(exit_code_owner(report) == "all workers ended well");
  report.exit_code = 75;
  CHECK(exit_code_owner(report) == "the nodes did not come together");
  report.exit_code = 70;
  CHECK(exit_code_owner(report) == "tprun's own");
  report = failed_run();
  CHECK(exit_code_owner(report) == "rank 2's");
  report.exit_code = 1;
  CHECK(exit_code_owner(report) == "as torchrun gives it; rank 2's own is 139");
  report.stop_signal = SIGTERM;
  CHECK(exit_code_owner(report) == "SIGTERM, sent to tprun");
}

TEST_CASE("the report is one JSON object with the root cause and every attempt's timeline") {
  RunReport report = failed_run();
  AttemptRecord attempt;
  attempt.round = 1;
  attempt.restart_count = 1;
  attempt.world_size = 4;
  attempt.started_at = 100.5;
  attempt.ended_because = "failed";
  WorkerRecord worker;
  worker.rank = 2;
  worker.pid = 44;
  worker.started_at = 101;
  worker.ended_at = 102;
  worker.signal = SIGSEGV;
  attempt.workers = {worker};
  attempt.failures = report.finish->failures;
  report.attempts = {AttemptRecord{}, attempt};
  const json object = json::parse(to_json_text(report));
  CHECK(object["outcome"] == "failed");
  CHECK(object["exit_code"] == 139);
  CHECK(object["exit_code_rank"] == 2);
  CHECK(object["exit_code_from"] == "rank 2's");
  CHECK(object["restarts"] == 1);
  CHECK(object["root_cause"]["signal"] == "SIGSEGV");
  CHECK(object["root_cause"]["exit_code"].is_null());
  CHECK(object["stop_signal"].is_null());
  REQUIRE(object["attempts"].size() == 2);
  CHECK(object["attempts"][1]["workers"][0]["ended_at"] == 102);
  CHECK(object["attempts"][1]["workers"][0]["signal"] == "SIGSEGV");
  CHECK(object["attempts"][1]["ended_because"] == "failed");
}

TEST_CASE("a run that ended well has a report too") {
  RunReport report;
  report.run_id = "job7";
  WorkerRecord running;
  AttemptRecord attempt;
  attempt.workers = {running};
  report.attempts = {attempt};
  const json object = json::parse(to_json_text(report));
  CHECK(object["outcome"] == "succeeded");
  CHECK(object["root_cause"].is_null());
  CHECK(object["exit_code_rank"].is_null());
  CHECK(object["failures"].empty());
  CHECK(object["attempts"][0]["workers"][0]["exit_code"].is_null());
}

TEST_CASE("bytes that are no text cannot spoil the report") {
  RunReport report = failed_run();
  report.finish->root_cause->message = "\xff\xfe boom";
  CHECK_NOTHROW(json::parse(to_json_text(report)));
}
