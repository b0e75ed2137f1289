#include "rendezvous/failure_words.hpp"

#include "tests/support/catch.hpp"

#include <csignal>

using namespace tensorplay::rendezvous;

namespace {

WorkerFailure exited(int code, const std::string& message) {
  WorkerFailure failure;
  failure.rank = 0;
  failure.host = "n1";
  failure.exit_code = code;
  failure.message = message;
  return failure;
}

}  // namespace

TEST_CASE("a failure is told with its error, and with its host where there are several") {
  WorkerFailure failure = exited(1, "ValueError: no data\nsecond line");
  CHECK(describe_failure(failure, false) == "rank 0 failed with ValueError: no data (exit code 1)");
  CHECK(describe_failure(failure, true) == "rank 0 on n1 failed with ValueError: no data (exit code 1)");
  failure.message.clear();
  CHECK(describe_failure(failure, false) == "rank 0 ended with exit code 1");
  failure.last_lines = {"Traceback (most recent call last):", "  File \"t.py\", line 3", "ValueError: no data", "bye"};
  CHECK(describe_failure(failure, false) == "rank 0 failed with ValueError: no data (exit code 1)");
}

TEST_CASE("words that are no name of an error are not what something failed with") {
  CHECK(describe_failure(exited(1, "rank 3 ended with exit code 1"), false) ==
        "rank 0 failed: rank 3 ended with exit code 1 (exit code 1)");
  CHECK(describe_failure(exited(1, "5"), false) == "rank 0 failed: 5 (exit code 1)");
  CHECK(describe_failure(exited(1, "KeyboardInterrupt"), false) ==
        "rank 0 failed with KeyboardInterrupt (exit code 1)");
}

TEST_CASE("a culprit that was stopped while it unwound is told with its error all the same") {
  WorkerFailure failure = exited(0, "std::runtime_error: the culprit throws");
  failure.signal = SIGTERM;
  failure.stopped_by_us = true;
  CHECK(describe_failure(failure, false) ==
        "rank 0 failed with std::runtime_error: the culprit throws and was stopped before it had ended");
}

TEST_CASE("an uncaught exception of C++ is told with the abort it ended in") {
  WorkerFailure failure = exited(0, "");
  failure.signal = SIGABRT;
  failure.last_lines = {"terminate called after throwing an instance of 'std::runtime_error'", "  what():  boom"};
  CHECK(describe_failure(failure, false) == "rank 0 died of SIGABRT: boom");
  failure.dumped_core = true;
  CHECK(describe_failure(failure, false) == "rank 0 died of SIGABRT (core dumped): boom");
  failure.last_lines = {"Aborted"};
  CHECK(describe_failure(failure, false) == "rank 0 died of SIGABRT (core dumped)");
}

TEST_CASE("a long error is cut between characters") {
  std::string message = "E: ";
  while (message.size() < 300) message += "\u00fc";
  const std::string text = describe_failure(exited(1, message), false);
  CHECK(text.size() < 250);
  CHECK(text.find("\u00fc... (exit code 1)") != std::string::npos);
}
