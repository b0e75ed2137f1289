#include "agent/deadman.hpp"

#include "tests/support/catch.hpp"

#include <csignal>
#include <unistd.h>

#include <sys/wait.h>

using tensorplay::agent::Deadman;
using namespace std::chrono_literals;

namespace {

/// How a child that does this ends; 0 when it exits by itself.
template <class Body>
int signal_that_ends(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("a process that is stopped beyond its lease is killed all the same") {
  REQUIRE(signal_that_ends([] {
            Deadman deadman;
            deadman.arm(std::chrono::steady_clock::now() + 20ms);
            ::raise(SIGSTOP);
          }) == SIGKILL);
}

TEST_CASE("one whose time is already over is killed at once") {
  REQUIRE(signal_that_ends([] {
            Deadman deadman;
            deadman.arm(std::chrono::steady_clock::now() - 1h);
            while (true) ::pause();
          }) == SIGKILL);
}

TEST_CASE("who says that it is alive, or has nothing more to lose, lives") {
  REQUIRE(signal_that_ends([] {
            Deadman deadman;
            deadman.arm(std::chrono::steady_clock::now() + 1h);
            deadman.arm(std::chrono::steady_clock::now() + 1ms);
            deadman.disarm();
            ::usleep(20'000);
          }) == 0);
}
