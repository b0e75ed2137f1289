#include "agent/process_tree.hpp"

#include "agent/containment.hpp"
#include "tests/agent/spawned.hpp"
#include "tests/support/catch.hpp"

#include <algorithm>
#include <signal.h>

#include <sys/prctl.h>

using namespace tensorplay::agent;
using namespace tensorplay::agent::testing;

TEST_CASE("a process whose name holds parentheses and spaces is read right") {
  prctl(PR_SET_NAME, "a) R 1 (b", 0, 0, 0);
  const auto stat = read_process_stat(getpid());
  prctl(PR_SET_NAME, "agent_process_test", 0, 0, 0);
  REQUIRE(stat);
  REQUIRE(stat->name == "a) R 1 (b");
  REQUIRE(stat->parent == getppid());
  REQUIRE(stat->session == getsid(0));
  REQUIRE(stat->start_ticks > 0);
}

TEST_CASE("no process, no answer") {
  REQUIRE_FALSE(read_process_stat(0x3fffffff));
  REQUIRE(children_of(0x3fffffff).empty());
}

TEST_CASE("children, descendants and the environment of a process are found") {
  auto [reader, writer] = make_pipe();
  SpawnRequest request = shell("sh -c 'echo $$; kill -STOP $$' & wait");
  request.environment.push_back("MARK=here");
  request.stdout_fd = writer.get();
  const pid_t worker = spawn_worker(request);
  writer.reset();
  char line[32] = {};
  REQUIRE(read(reader.get(), line, sizeof line - 1) > 0);
  const pid_t grandchild = std::stoi(line);
  REQUIRE(children_of(getpid()) == std::vector<pid_t>{worker});
  REQUIRE(descendants_of(getpid()) == std::vector<pid_t>{worker, grandchild});
  REQUIRE(initial_environment_of(worker, "MARK") == "here");
  REQUIRE(initial_environment_of(grandchild, "MARK") == "here");
  REQUIRE_FALSE(initial_environment_of(worker, "MAR"));
  REQUIRE(has_children());
  kill(grandchild, SIGKILL);
  end_all_children(std::chrono::milliseconds{0}, std::chrono::seconds{10});
  REQUIRE_FALSE(has_children());
}
