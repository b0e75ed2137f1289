#include "agent/scheduler/node_address.hpp"

#include "agent/child_output.hpp"
#include "tests/support/catch.hpp"

#include <chrono>
#include <signal.h>

using namespace tensorplay::agent;
using namespace std::chrono_literals;
using tensorplay::distributed::Deadline;
using Words = std::vector<std::string>;

TEST_CASE("a node's address is read from what scontrol prints") {
  const std::string printed =
      "NodeName=n1 Arch=x86_64 CoresPerSocket=1 AvailableFeatures=(null) Gres=(null) NodeAddr=10.0.0.7 "
      "NodeHostName=vm Port=17001 Version=22.05.8 OS=Linux 6.1.0 #1 SMP\n";
  CHECK(addresses_in_scontrol(printed, "n1") == Words{"10.0.0.7", "vm"});
  CHECK(addresses_in_scontrol("NodeName=n1 NodeAddr=n1 NodeHostName=n1", "n1").empty());
  CHECK(addresses_in_scontrol("slurm_load_node error: Unable to contact slurm controller\n", "n1").empty());
  CHECK(addresses_in_scontrol("", "n1").empty());
}

TEST_CASE("outside of SLURM nobody is asked, and a name that could be an option never reaches scontrol") {
  const Words none;
  CHECK_FALSE(name_source(EnvironmentView(none)));
  const Words job{"SLURM_JOB_ID=1"};
  CHECK(name_source(EnvironmentView(job)));
  CHECK(ask_slurm("--help").empty());
  CHECK(ask_slurm("a b").empty());
}

TEST_CASE("a command's output is read to its end, and a failure is no output") {
  CHECK(output_of({"printf", "%s", "a b"}, Deadline::after(30s)) == "a b");
  CHECK_FALSE(output_of({"false"}, Deadline::after(30s)));
  CHECK_FALSE(output_of({"tprun-no-such-command"}, Deadline::after(30s)));
  CHECK(output_of({"sh", "-c", "read line || echo no input"}, Deadline::after(30s)) == "no input\n");
}

TEST_CASE("a command whose end somebody else has reaped is no failure") {
  // In the agent whoever is told of an ended child first reaps it: the answer was thrown away then.
  const auto old = ::signal(SIGCHLD, SIG_IGN);  // The kernel reaps.
  CHECK(output_of({"printf", "x"}, Deadline::after(30s)) == "x");
  ::signal(SIGCHLD, old);
}

TEST_CASE("a command that does not end by the deadline is killed") {
  CHECK_FALSE(output_of({"sleep", "1000"}, Deadline::after(10ms)));
  CHECK_FALSE(output_of({"sh", "-c", "exec >&-; exec sleep 1000"}, Deadline::after(100ms)));
  CHECK_FALSE(output_of({"yes"}, Deadline::after(30s)));  // Never ends, and prints too much.
}
