#include "rendezvous/failure_judgement.hpp"

#include "tests/support/catch.hpp"

#include <csignal>

using namespace tensorplay::rendezvous;

namespace {

WorkerFailure exited(int code, std::string message = "") {
  WorkerFailure f;
  f.exit_code = code;
  f.message = std::move(message);
  return f;
}

WorkerFailure died(int signal) {
  WorkerFailure f;
  f.signal = signal;
  return f;
}

WorkerFailure stopped(WorkerFailure f) {
  f.stopped_by_us = true;
  return f;
}

WorkerFailure with_stderr(WorkerFailure f, std::vector<std::string> lines) {
  f.last_lines = std::move(lines);
  return f;
}

}  // namespace

TEST_CASE("errors about a lost peer are told from errors of one's own") {
  for (const auto* text : {
           "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:4711",
           "DistBackendError: NCCL error: remote process exited or there was a network error, ncclRemoteError",
           "[Errno 32] Broken pipe",
           "ConnectionResetError: [Errno 104] Connection reset by peer",
           "Gloo connectFullMesh failed with [...] Connect timeout",
           "Watchdog caught collective operation timeout",
           "recvValue failed: failed to recv, got 0 bytes",
           "Timed out waiting 1800000ms for recv operation to complete",
       }) {
    CAPTURE(text);
    REQUIRE(speaks_of_lost_peer(text));
    REQUIRE(kind_of(exited(1, text)) == FailureKind::kPeerLost);
  }
  for (const auto* text : {"ValueError: no data", "CUDA error: out of memory", "KeyError: 'peer'", ""}) {
    REQUIRE_FALSE(speaks_of_lost_peer(text));
  }
}

TEST_CASE("without an error file the last error on stderr is what a worker says") {
  const std::vector<std::string> culprit = {"[W socket.cpp] connection reset by peer, retrying",
                                            "Traceback (most recent", "  File \"a.py\", line 3", "ValueError: no data"};
  REQUIRE(kind_of(with_stderr(exited(1), culprit)) == FailureKind::kOwn);
  const std::vector<std::string> victim = {"Traceback (most recent call last):", "  raise ValueError",
                                           "torch.distributed.DistBackendError: x", "Connection closed by peer"};
  REQUIRE(kind_of(with_stderr(exited(1), victim)) == FailureKind::kPeerLost);
}

TEST_CASE("the rank that torch puts before each line of an exception does not hide the error") {
  const auto culprit = with_stderr(died(SIGTERM), {"[W socket.cpp] connection closed",
                                                   "[rank2]: Traceback (most recent", "[rank2]: ValueError: no data"});
  REQUIRE(kind_of(stopped(culprit)) == FailureKind::kOwn);
  const auto victim = with_stderr(exited(1), {"[rank0]: RuntimeError: [pair.cc:534] Connection closed by peer"});
  REQUIRE(kind_of(victim) == FailureKind::kPeerLost);
}

TEST_CASE("an uncaught C++ error about a peer is a victim's though it ends in SIGABRT") {
  const auto aborted = with_stderr(died(SIGABRT), {"terminate called after throwing an instance of 'gloo::IoException'",
                                                   "  what():  Connection closed by peer [127.0.0.1]:1"});
  REQUIRE(kind_of(aborted) == FailureKind::kPeerLost);
  REQUIRE(kind_of(died(SIGABRT)) == FailureKind::kOwn);
}

TEST_CASE("a crash is a worker's own whatever it printed before") {
  REQUIRE(kind_of(with_stderr(died(SIGSEGV), {"Connection closed by peer"})) == FailureKind::kOwn);
  REQUIRE(kind_of(died(SIGKILL)) == FailureKind::kOwn);
  REQUIRE(kind_of(died(SIGPIPE)) == FailureKind::kPeerLost);
}

TEST_CASE("what our own stop did to a worker is no cause, even if it ends by an error of its handler") {
  REQUIRE(kind_of(stopped(died(SIGTERM))) == FailureKind::kStoppedByUs);
  REQUIRE(kind_of(stopped(died(SIGKILL))) == FailureKind::kStoppedByUs);
  REQUIRE(kind_of(stopped(exited(143))) == FailureKind::kStoppedByUs);
  REQUIRE(kind_of(stopped(exited(1, "SignalException: Process 7 got signal: 15"))) == FailureKind::kStoppedByUs);
  REQUIRE(kind_of(stopped(with_stderr(exited(130), {"KeyboardInterrupt"}))) == FailureKind::kStoppedByUs);
  REQUIRE(kind_of(stopped(died(SIGSEGV))) == FailureKind::kOwn);
}

TEST_CASE("a culprit that our stop overtook is the cause, with exit code 1") {
  auto victim = exited(1, "Connection closed by peer");
  victim.rank = 0;
  victim.ended_at = 10;
  auto culprit = stopped(with_stderr(died(SIGTERM), {"Traceback (most recent call last):", "ValueError: no data"}));
  culprit.rank = 1;
  culprit.ended_at = 10.2;
  const auto verdict = judge({victim, culprit});
  REQUIRE(verdict.root_cause->rank == 1);
  REQUIRE(exit_code_of(*verdict.root_cause) == 1);
  REQUIRE(verdict.failures[1].followed_from == 1);
  REQUIRE(verdict.failures[0].followed_from == -1);
}

TEST_CASE("the time of the throw counts before the time of the end") {
  auto early = exited(1, "ValueError: a");
  early.rank = 3;
  early.ended_at = 20;
  early.thrown_at = 9;
  auto late = exited(1, "ValueError: b");
  late.rank = 1;
  late.ended_at = 10;
  REQUIRE(judge({late, early}).root_cause->rank == 3);
}

TEST_CASE("a start-up failure is the cause before everything else") {
  auto startup = exited(127);
  startup.rank = 5;
  startup.is_startup_failure = true;
  startup.ended_at = 50;
  auto crash = died(SIGSEGV);
  crash.rank = 0;
  REQUIRE(judge({crash, startup}).root_cause->rank == 5);
}

TEST_CASE("no failures, no cause") {
  REQUIRE_FALSE(judge({}).root_cause);
}

TEST_CASE("an exit code is the worker's own or 128 and its signal") {
  REQUIRE(exit_code_of(exited(7)) == 7);
  REQUIRE(exit_code_of(died(SIGSEGV)) == 139);
  REQUIRE(describe_end(died(SIGSEGV)) == "died of SIGSEGV");
  REQUIRE(describe_end(exited(7)) == "ended with exit code 7");
  REQUIRE(signal_name(SIGRTMIN + 6) == "signal " + std::to_string(SIGRTMIN + 6));
}
