#include "agent/failure_report.hpp"

#include "agent/failure_table.hpp"
#include "tests/support/catch.hpp"

#include <csignal>

using namespace tensorplay::agent;
using tensorplay::rendezvous::FinishOrder;
using tensorplay::rendezvous::WorkerFailure;

namespace {

WorkerFailure failure(int rank, const std::string& host, int local_rank, int pid) {
  WorkerFailure made;
  made.rank = rank;
  made.host = host;
  made.local_rank = local_rank;
  made.pid = pid;
  made.runtime_seconds = 12.3;
  return made;
}

WorkerFailure stopped(int rank, const std::string& host, int local_rank, int pid) {
  WorkerFailure made = failure(rank, host, local_rank, pid);
  made.signal = SIGTERM;
  made.stopped_by_us = true;
  return made;
}

RunReport report_of(std::vector<WorkerFailure> failures, int exit_code) {
  RunReport report;
  report.run_id = "job7";
  report.program = "train.py";
  report.exit_code = exit_code;
  FinishOrder finish;
  finish.exit_code = exit_code;
  finish.root_cause = failures.front();
  finish.failures = std::move(failures);
  report.finish = finish;
  return report;
}

}  // namespace

TEST_CASE("a crash on one of two nodes is told with its victims, its last words and whose code it is") {
  WorkerFailure root = failure(2, "n2", 0, 4711);
  root.signal = SIGSEGV;
  root.log_file = "logs/job7_k3/attempt_0/0/stderr.log";
  root.last_lines = {"step 410 loss 2.113", "native stack: gather_rows < forward < train_step < main"};
  WorkerFailure victim = failure(1, "n1", 1, 4631);
  victim.exit_code = 1;
  victim.message = "connection closed by peer";
  victim.followed_from = 2;
  RunReport report = report_of({root, stopped(0, "n1", 0, 4630), victim, stopped(3, "n2", 1, 4712)}, 139);
  report.max_restarts = 3;
  CHECK(render_failure_report(report, {}) ==
        R"(tprun: job7 failed: rank 2 on n2 died of SIGSEGV, 12.3 s into attempt 1 of 4

    rank  node  local  pid   ended              after  log
       2  n2        0  4711  SIGSEGV           12.3 s  logs/job7_k3/attempt_0/0/stderr.log
       0  n1        0  4630  stopped by tprun  12.3 s
       1  n1        1  4631  lost its peer     12.3 s  followed from rank 2
       3  n2        1  4712  stopped by tprun  12.3 s

  rank 2's last lines on stderr:
    | step 410 loss 2.113
    | native stack: gather_rows < forward < train_step < main

  exit code 139 (rank 2's)
)");
}

TEST_CASE("a Python exception that stderr has shown is not shown twice") {
  WorkerFailure root = failure(1, "n1", 1, 10);
  root.exit_code = 1;
  root.message = "ValueError: no data";
  root.traceback = "Traceback (most recent call last):\n  File \"t.py\", line 3\nValueError: no data";
  root.last_lines = {"Traceback (most recent call last):", "  File \"t.py\", line 3", "ValueError: no data"};
  RunReport report = report_of({root}, 1);
  report.run_id = "none";
  CHECK(render_failure_report(report, {}) ==
        R"(tprun: train.py failed: rank 1 failed with ValueError: no data (exit code 1), 12.3 s after its start

    rank  local  pid  ended         after
       1      1  10   exit code 1  12.3 s

  rank 1's last lines on stderr:
    | Traceback (most recent call last):
    |   File "t.py", line 3
    | ValueError: no data

  exit code 1 (rank 1's)
)");
}

TEST_CASE("a terminal that had stderr leaves the error file's traceback to quote") {
  WorkerFailure root = failure(0, "n1", 0, 10);
  root.exit_code = 1;
  root.message = "ValueError: no data";
  root.traceback = "Traceback (most recent call last):\n  File \"t.py\", line 3\nValueError: no data\n";
  const std::string text = render_failure_report(report_of({root}, 1), {});
  CHECK(text.find("  rank 0's traceback, from its error file:\n    | Traceback (most recent call last):\n"
                  "    |   File \"t.py\", line 3\n    | ValueError: no data\n\n  exit code") != std::string::npos);
}

TEST_CASE("an exception on stderr is in the headline") {
  WorkerFailure root = failure(0, "n1", 0, 10);
  root.exit_code = 1;
  root.last_lines = {"Traceback (most recent call last):", "  File \"t.py\", line 3", "ValueError: no data", "bye"};
  const std::string text = render_failure_report(report_of({root}, 1), {});
  CHECK(text.find("job7 failed: rank 0 failed with ValueError: no data (exit code 1), ") != std::string::npos);
}

TEST_CASE("last lines that stand right above the report are not quoted in it") {
  WorkerFailure root = failure(1, "n1", 1, 10);
  root.exit_code = 3;
  root.last_lines = {"a last word"};
  RunReport report = report_of({root}, 3);
  report.host = "n1";
  report.ranks_in_sight = {1};
  const std::string text = render_failure_report(report, {});
  CHECK(text.find("\n  rank 1's last lines on stderr are above\n") != std::string::npos);
  CHECK(text.find("a last word") == std::string::npos);
  report.host = "n2";
  CHECK(render_failure_report(report, {}).find("    | a last word\n") != std::string::npos);
}

TEST_CASE("a core file is told in the headline and in the table") {
  WorkerFailure root = failure(0, "n1", 0, 10);
  root.signal = SIGSEGV;
  root.dumped_core = true;
  const std::string text = render_failure_report(report_of({root}, 139), {});
  CHECK(text.find("rank 0 died of SIGSEGV (core dumped), ") != std::string::npos);
  CHECK(text.find("  SIGSEGV (core dumped)  ") != std::string::npos);
}

TEST_CASE("a program that cannot be started is told in the headline") {
  WorkerFailure root = failure(0, "n1", 0, 0);
  root.is_startup_failure = true;
  root.exit_code = 127;
  root.message = "./train: No such file or directory";
  CHECK(render_failure_report(report_of({root}, 127), {}) ==
        R"(tprun: job7 failed: rank 0 could not be started: ./train: No such file or directory

    rank  local  pid  ended        after
       0      0  -    not started      -

  exit code 127 (rank 0's)
)");
}

TEST_CASE("hints say what the eye would look for next") {
  WorkerFailure root = failure(0, "n1", 0, 10);
  root.signal = SIGKILL;
  root.out_of_memory = true;
  const auto text_of = [&] { return render_failure_report(report_of({root}, 137), {}); };
  CHECK(text_of().find("died of") == std::string::npos);
  CHECK(text_of().find("rank 0 was killed for lack of memory (SIGKILL)") != std::string::npos);
  CHECK(text_of().find("hint: the kernel's OOM killer took it") != std::string::npos);
  root.out_of_memory = false;
  CHECK(text_of().find("hint: tprun did not send this SIGKILL") != std::string::npos);
  root.signal = SIGBUS;
  CHECK(text_of().find("hint: SIGBUS is what a full /dev/shm gives") != std::string::npos);
  root.signal = 0;
  root.exit_code = 139;
  CHECK(text_of().find("hint: exit code 139 is what a shell gives for a program that died of SIGSEGV") !=
        std::string::npos);
  root.exit_code = 3;
  CHECK(text_of().find("hint") == std::string::npos);
}

TEST_CASE("a thousand ranks are a table of a few rows") {
  WorkerFailure root = failure(517, "n65", 5, 99);
  root.signal = SIGSEGV;
  std::vector<WorkerFailure> failures{root};
  for (int rank = 0; rank < 1000; ++rank) {
    if (rank != 517) failures.push_back(stopped(rank, "n" + std::to_string(rank / 8), rank % 8, 1000 + rank));
  }
  failures[1].stopped_by_us = false;
  failures[1].signal = 0;
  failures[1].exit_code = 3;
  CHECK(render_failure_table(*report_of(failures, 139).finish, {}) ==
        R"(             rank  node       local  pid        ended              after
              517  n65            5  99         SIGSEGV           12.3 s
    1-516,518-999  125 nodes         998 ranks  stopped by tprun  12.3 s
                0  n0                1 rank     exit code 3       12.3 s
)");
}

TEST_CASE("earlier attempts have a line each") {
  WorkerFailure root = failure(1, "n1", 1, 10);
  root.signal = SIGKILL;
  RunReport report = report_of({root}, 137);
  report.max_restarts = 2;
  report.finish->round = 2;
  report.finish->restart_count = 2;
  for (int round = 0; round < 3; ++round) {
    AttemptRecord attempt;
    attempt.round = round;
    attempt.restart_count = round;
    attempt.failures = {root};
    report.attempts.push_back(attempt);
  }
  const std::string text = render_failure_report(report, {});
  CHECK(text.find("12.3 s into attempt 3 of 3") != std::string::npos);
  CHECK(text.find("  earlier attempts:\n    1: rank 1 died of SIGKILL after 12.3 s\n"
                  "    2: rank 1 died of SIGKILL after 12.3 s\n\n") != std::string::npos);
}

TEST_CASE("a run whose nodes never met has its reason and its code") {
  RunReport report;
  report.run_id = "job7";
  report.exit_code = 75;
  FinishOrder finish;
  finish.exit_code = 75;
  finish.why = "waited 30 s at n1:29400: 3 of 4 nodes are here";
  report.finish = finish;
  CHECK(render_failure_report(report, {}) ==
        "tprun: job7 failed: waited 30 s at n1:29400: 3 of 4 nodes are here\n\n"
        "  exit code 75 (the nodes did not come together)\n");
}

TEST_CASE("a run that ended well has no failure report") {
  RunReport report;
  CHECK(render_failure_report(report, {}).empty());
  report.finish = FinishOrder{};
  CHECK(render_failure_report(report, {}).empty());
}

TEST_CASE("colour only where it was asked for") {
  WorkerFailure root = failure(1, "n1", 1, 10);
  root.exit_code = 3;
  const RunReport report = report_of({root}, 3);
  CHECK(render_failure_report(report, {}).find('\x1b') == std::string::npos);
  CHECK(render_failure_report(report, {true, 100}).find("\x1b[1;31mfailed\x1b[0m") != std::string::npos);
}

TEST_CASE("durations and ranks are short") {
  CHECK(duration_text(0.0123) == "12 ms");
  CHECK(duration_text(1.5) == "1.50 s");
  CHECK(duration_text(59.94) == "59.9 s");
  CHECK(duration_text(250) == "4 min 10 s");
  CHECK(duration_text(12000) == "3 h 20 min");
  CHECK(duration_text(190800) == "2 d 5 h");
  CHECK(rank_ranges({3, 0, 1, 2, 5}) == "0-3,5");
  CHECK(rank_ranges({0, 2, 4, 6, 8}, 3) == "0,2,4,...");
  CHECK(rank_ranges({}).empty());
}
