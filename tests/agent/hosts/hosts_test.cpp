// --hosts without ssh: what is read, who starts whom, what travels, and what becomes of it in a plan.
#include "agent/hosts/host_list.hpp"
#include "agent/hosts/host_member.hpp"
#include "agent/hosts/host_tree.hpp"
#include "agent/hosts/meeting_names.hpp"
#include "agent/hosts/piped_child.hpp"
#include "agent/hosts/relay_wire.hpp"
#include "agent/launch_request.hpp"
#include "agent/usage_error.hpp"
#include "tests/agent/fake_machine.hpp"
#include "tests/support/catch.hpp"

#include <poll.h>
#include <unistd.h>

using namespace tensorplay::agent;
using Words = std::vector<std::string>;
using Hosts = std::vector<HostEntry>;
using Indexes = std::vector<std::size_t>;

namespace {

LaunchRequest read(const FakeMachine& machine, Words words, Words environment = {}) {
  words.insert(words.begin(), "tprun");
  words.push_back("true");
  environment.push_back("PATH=/usr/bin");
  return read_launch_request({words, EnvironmentView(environment), machine});
}

std::string complaint(const FakeMachine& machine, const Words& words) {
  try {
    read(machine, words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(none)";
}

}  // namespace

TEST_CASE("hosts are names or addresses, each with a number of workers or without") {
  CHECK(parse_hosts("x", "a,b:8, c") == Hosts{{"a", {}}, {"b", 8}, {"c", {}}});
  CHECK(parse_hosts("x", "[fd00::1]:2,fd00::2,me@n1:3") == Hosts{{"fd00::1", 2}, {"fd00::2", {}}, {"me@n1", 3}});
  CHECK(parse_hosts("x", "n[1-3]:4,m") == Hosts{{"n1", 4}, {"n2", 4}, {"n3", 4}, {"m", {}}});
  CHECK(parse_hosts("x", "a,a,b:2,b:3") == Hosts{{"a", 2}, {"b", 5}});
  for (const char* text :
       {"", ",", "-oProxyCommand=x", "a b", "a:", "a:0", "a:x", "a;b", "$(x)", "[fd00::1", "a:1:[2"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_hosts("--hosts", text), UsageError);
  }
}

TEST_CASE("a host file may be mpirun's, Grid Engine's or PBS's") {
  CHECK(parse_hostfile("f", "# all of them\nn1 slots=8 max_slots=8\nn2:4\n\n n3 # spare\n") ==
        Hosts{{"n1", 8}, {"n2", 4}, {"n3", {}}});
  CHECK(parse_hostfile("f", "g1.x 2 all.q@g1 UNDEFINED\ng2.x\t3 all.q@g2 UNDEFINED\n") ==
        Hosts{{"g1.x", 2}, {"g2.x", 3}});
  CHECK(parse_hostfile("f", "n1\nn1\nn2\nn1\n") == Hosts{{"n1", 3}, {"n2", {}}});
  CHECK_THROWS_WITH(parse_hostfile("f", "n1\nn2 slots=x\n"),
                    Catch::Matchers::StartsWith("f:2: slots=x: not a number of workers"));
  CHECK_THROWS_WITH(parse_hostfile("f", "# nobody\n"), "f: names no host; give one on each line");
}

TEST_CASE("a tree of hosts has at most so many branches, and everybody is in exactly one") {
  CHECK(divide({}).empty());
  CHECK(divide({0, 1, 2}, 32) == std::vector<Indexes>{{0}, {1}, {2}});
  CHECK(divide({0, 1, 2, 3, 4}, 2) == std::vector<Indexes>{{0, 1, 2}, {3, 4}});
  Indexes all;
  for (std::size_t i = 0; i < 1000; ++i) all.push_back(i);
  Indexes seen;
  for (const auto& branch : divide(all)) {
    CHECK(branch.size() <= 32);
    seen.insert(seen.end(), branch.begin(), branch.end());
  }
  CHECK(seen == all);
}

TEST_CASE("ssh never asks, and the user's own options come first") {
  const Words words = relay_command("/usr/bin/ssh -p 2222 -o BatchMode=no", "n1", "/a b/tprun");
  CHECK(Words(words.begin(), words.begin() + 5) == Words{"/usr/bin/ssh", "-p", "2222", "-o", "BatchMode=no"});
  CHECK(words[words.size() - 2] == "n1");
  CHECK(words.back() == "exec '/a b/tprun' --stdin-lifeline");
  CHECK(relay_command("qrsh -inherit", "n1", "/t") == Words{"qrsh", "-inherit", "n1", "exec /t --stdin-lifeline"});
}

TEST_CASE("what a login sets by itself, and what belongs to this place, does not travel") {
  const Words all{"PATH=/x",   "HOME=/root", "SSH_CONNECTION=1", "NCCL_DEBUG=INFO", "TPRUN_WORKER=1.0.0",
                  "PWD=/here", "EMPTY=",     "TPRUN_HOSTS=a,b",  "DISPLAY=:0",      "nonsense"};
  CHECK(travelling_environment(EnvironmentView(all)) == Words{"PATH=/x", "NCCL_DEBUG=INFO", "EMPTY="});
}

TEST_CASE("an assignment arrives as it was sent, whatever bytes are in it") {
  Assignment sent;
  sent.members = {3, 7};
  sent.names = {"n3", "n7"};
  sent.member_values = {"{}", "{}"};
  sent.program = "/t";
  sent.words = {"tprun", "a\nb", "\xff\xfe", "\xc3\xa4"};
  sent.environment = {"X=\x80"};
  sent.folder = "/f";
  sent.ssh = "ssh";
  const std::string line = format_assignment(sent);
  CHECK(line.find('\n') == line.size() - 1);
  const Assignment got = parse_assignment(line);
  CHECK(got.words == sent.words);
  CHECK(got.environment == sent.environment);
  CHECK(got.members == sent.members);
  const Assignment part = part_of(got, {1});
  CHECK(part.names == Words{"n7"});
  CHECK(part.members == Indexes{7});
  CHECK_THROWS(parse_assignment("hello"));
  CHECK_THROWS(parse_assignment("{}"));
}

TEST_CASE("frames are found behind what a login shell says, in pieces of any size") {
  const std::string stream = "Welcome!\nLast login: never\n" + greeting_of_relay() +
                             format_frame(FrameKind::kOut, "a\nb\n") + format_frame(FrameKind::kEnd, "3 139");
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, stream.size()}) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      reader.feed(std::string_view(stream).substr(at, step));
      while (auto frame = reader.take()) frames.push_back(*frame);
    }
    REQUIRE(frames.size() == 2);
    CHECK(frames[0].text == "a\nb\n");
    CHECK(parse_member_news(frames[1].text) == std::pair<std::size_t, std::string>{3, "139"});
    CHECK(reader.has_greeted());
  }
  FrameReader reader;
  reader.feed(greeting_of_relay() + "garbage that is no frame");
  CHECK_THROWS(reader.take());
}

TEST_CASE("lines are passed on whole, and the last one gets its end") {
  LineJoiner lines;
  CHECK(lines.feed("ab").empty());
  CHECK(lines.feed("c\nd") == "abc\n");
  CHECK(lines.finish() == "d\n");
  CHECK(lines.finish().empty());
  CHECK(lines.feed(std::string(100'000, 'x')).size() == 100'000);
}

TEST_CASE("--hosts gives each host its place, and its workers unless they are given") {
  FakeMachine machine;
  machine.add_executable("/usr/bin/true");
  const LaunchPlan head = read(machine, {"--hosts=a:4,b"}).plan;
  CHECK(head.hosts.size() == 2);
  CHECK(head.max_nodes == 2);
  CHECK(head.nproc_per_node == 4);
  CHECK(head.ssh_command == "ssh");
  CHECK(head.rdzv.run_id == "hosts-" + machine.uuid);
  const std::string member = "--host-member=" + format_host_member(head.hosts, {"10.0.0.1"}, "job", 1);
  const LaunchPlan second = read(machine, {member}, {"TPRUN_HOSTS=a:4,b"}).plan;
  CHECK(second.hosts.empty());
  CHECK(second.rdzv.node_index == 1);
  CHECK(second.rdzv.run_id == "job");
  CHECK(second.rdzv.endpoints.front().host == "10.0.0.1");
  CHECK(second.nproc_per_node == 1);
  CHECK(read(machine, {"--hosts=a:4,b", "--nproc-per-node=2"}).plan.nproc_per_node == 2);
  CHECK(read(machine, {"--stdin-lifeline"}).action == Action::kRelay);
}

TEST_CASE("what --hosts starts on a host can never start the hosts again") {
  const Words words{"/t/tprun", "--nproc-per-node=2", "--hosts", "a,b", "--hostf=x", "--ssh_command=ssh -p 1", "-r3",
                    "train",    "--hosts=c"};
  CHECK(words_for_member(words, Front::kTprun) == Words{"/t/tprun", "--nproc-per-node=2", "-r3", "train", "--hosts=c"});
  const Words all{"TPRUN_HOSTS=a", "TPRUN_HOSTFILE=x", "A=1"};
  CHECK(travelling_environment(EnvironmentView(all)) == Words{"A=1"});
  FakeMachine machine;
  machine.add_executable("/usr/bin/true");
  machine.add_file("job.toml", "hosts = ['a', 'b']\n");
  const std::string member = "--host-member=" + format_host_member({{"a", {}}, {"b", {}}}, {}, "job", 1);
  CHECK(read(machine, {member, "--config=job.toml"}).plan.hosts.empty());
  CHECK(read(machine, {"--config=job.toml"}).plan.hosts.size() == 2);
  CHECK(complaint(machine, {member, "--hosts=a,b"}) ==
        "--hosts=a,b: this tprun was started by one with --hosts, and starts no others");
  CHECK(complaint(machine, {"--host-member=x"}) == "--host-member: is tprun's own, and not as it writes it; drop it");
}

TEST_CASE("hosts that cannot be meant are refused") {
  FakeMachine machine;
  machine.add_executable("/usr/bin/true");
  machine.add_file("hosts.txt", "a\nb\n");
  CHECK(read(machine, {"--hostfile=hosts.txt"}).plan.hosts.size() == 2);
  CHECK(complaint(machine, {"--hostfile=none.txt"}) ==
        "--hostfile=none.txt: cannot be read; give a file with one host on each line");
  CHECK(complaint(machine, {"--hostfile=hosts.txt", "--hosts=a"}) ==
        "--hostfile=hosts.txt: --hosts=a names hosts too; drop one of them");
  CHECK(complaint(machine, {"--hosts=a,b", "--nnodes=1"}) ==
        "--hosts=a,b: names 2 hosts, but --standalone and --nnodes=1 mean one; drop one of them");
  CHECK(complaint(machine, {"--hosts=a,b", "--ssh-command= "}) ==
        "--ssh-command: is empty; give a command such as ssh");
}

TEST_CASE("ssh's configuration tells the host behind an alias") {
  CHECK(host_name_in_ssh_configuration("user root\nhostname 10.0.0.7\nport 22\n") == "10.0.0.7");
  CHECK(host_name_in_ssh_configuration("usage: ssh\n").empty());
}

TEST_CASE("a child gets exactly the environment it is given") {
  // Once built from a temporary: the child saw freed memory instead, and took itself for the one who starts the others.
  PipedChildRequest request;
  request.words = {"/usr/bin/env"};
  request.environment = Words{"A=1", "LONG=" + std::string(200, 'x')};
  request.has_input = false;
  PipedChild child = start_piped_child(request);
  pollfd end{child.end.get(), POLLIN, 0};
  REQUIRE(::poll(&end, 1, 30'000) == 1);
  char text[1024];
  const ssize_t got = ::read(child.output.get(), text, sizeof text);
  CHECK(std::string(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))) ==
        "A=1\nLONG=" + std::string(200, 'x') + "\n");
  CHECK(child.reap() == 0);
  request.words = {"/no/such/program"};
  CHECK_THROWS_AS(start_piped_child(request), std::system_error);
}
