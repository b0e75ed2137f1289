#include "agent/worker_group.hpp"

#include "agent/process_tree.hpp"
#include "tests/agent/spawned.hpp"
#include "tests/support/catch.hpp"

#include <asio/steady_timer.hpp>

#include <fstream>
#include <signal.h>

#include <sys/stat.h>

using namespace std::chrono_literals;
using namespace tensorplay::agent;
using namespace tensorplay::agent::testing;
using Clock = std::chrono::steady_clock;

namespace {

/// A group on a loop of its own, and what it reported.
class Fixture {
 public:
  explicit Fixture(WorkerGroupOptions options = {}) {
    become_subreaper();
    WorkerGroup::Callbacks callbacks;
    callbacks.on_exit = [this](const WorkerExit& exit) {
      exits.push_back(exit);
      if (on_exit) on_exit(exit);
    };
    callbacks.on_gone = [this] {
      ++gone;
      loop.stop();
    };
    callbacks.on_unkillable = [this](const std::vector<Unkillable>& left) { unkillable = left; };
    group.emplace(loop, options, std::move(callbacks));
  }

  void start(const std::vector<std::string>& lines) {
    std::vector<SpawnRequest> requests;
    for (const std::string& line : lines) requests.push_back(shell(line));
    group->start(requests);
  }

  /// Runs the loop until the round is gone, for at most 20 s. Returns how long it took.
  Clock::duration run_until_gone() {
    const auto begin = Clock::now();
    const int before = gone;
    loop.restart();
    while (gone == before && Clock::now() - begin < 20s) loop.run_one_for(20s);
    REQUIRE(gone == before + 1);
    return Clock::now() - begin;
  }

  /// Runs the loop until `reader` has given a line.
  std::string wait_for_line(const tensorplay::base::UniqueFd& reader) {
    std::string line;
    for (char byte = 0; read(reader.get(), &byte, 1) == 1 && byte != '\n';) line += byte;
    return line;
  }

  asio::io_context loop{1};
  std::vector<WorkerExit> exits;
  std::vector<Unkillable> unkillable;
  int gone = 0;
  std::function<void(const WorkerExit&)> on_exit;
  std::optional<WorkerGroup> group;
};

bool is_alive(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat && stat->state != 'Z';
}

}  // namespace

TEST_CASE("every worker's end is told with its code or signal, and then that all is gone") {
  Fixture fixture;
  fixture.start({"exit 0", "exit 7", "kill -SEGV $$"});
  fixture.run_until_gone();
  REQUIRE(fixture.exits.size() == 3);
  std::sort(fixture.exits.begin(), fixture.exits.end(),
            [](const auto& a, const auto& b) { return a.local_rank < b.local_rank; });
  REQUIRE(fixture.exits[0].exit_code == 0);
  REQUIRE(fixture.exits[1].exit_code == 7);
  REQUIRE(fixture.exits[2].signal == SIGSEGV);
  REQUIRE_FALSE(fixture.exits[2].stopped_by_us);
  REQUIRE_FALSE(fixture.group->has_live_workers());
}

TEST_CASE("a worker without descendants is gone without a pause") {
  Fixture fixture({false, 500ms, 30s});
  fixture.start({"exit 1"});
  REQUIRE(fixture.run_until_gone() < 300ms);
}

TEST_CASE("a helper that ends soon after its worker costs only its own time") {
  Fixture fixture({false, 10s, 30s});
  fixture.start({"sh -c 'sleep 0.05' & exit 0"});
  REQUIRE(fixture.run_until_gone() < 5s);
}

TEST_CASE("children, session leaders and daemons are killed after a worker's end and its helpers' time") {
  Fixture fixture({false, 50ms, 30s});
  fixture.start(
      {"sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & exit' &) ; "
       "sh -c 'trap \"\" TERM; sleep 1000' & exit 0"});
  fixture.run_until_gone();
  REQUIRE_FALSE(has_children());
}

TEST_CASE("a stopped descendant is killed too") {
  Fixture fixture({false, 50ms, 30s});
  fixture.start({"sh -c 'kill -STOP $$' & exit 0"});
  fixture.run_until_gone();
  REQUIRE_FALSE(has_children());
}

TEST_CASE("what one worker left is swept while another goes on, whose own daemons are not touched") {
  Fixture fixture({false, 50ms, 30s});
  auto [reader, writer] = make_pipe();
  std::vector<SpawnRequest> requests{
      shell("setsid -f sleep 1000; exit 0"),
      shell("setsid -f sh -c 'echo $$; exec sleep 1000' ; exec sleep 1000"),
  };
  requests[1].stdout_fd = writer.get();
  fixture.group->start(requests);
  writer.reset();
  const pid_t daemon = std::stoi(fixture.wait_for_line(reader));
  // Two children stay: the other worker and its daemon.
  const auto deadline = Clock::now() + 10s;
  while (Clock::now() < deadline && (fixture.exits.empty() || children_of(getpid()).size() != 2)) {
    fixture.loop.run_one_for(100ms);
  }
  REQUIRE(children_of(getpid()).size() == 2);
  REQUIRE(is_alive(daemon));
  REQUIRE(fixture.gone == 0);
  fixture.group->kill_now();
  fixture.run_until_gone();
  REQUIRE_FALSE(has_children());
}

TEST_CASE("a daemon may stay when asked for and all ended well, and not after a failure") {
  Fixture fixture({true, 50ms, 30s});
  auto [reader, writer] = make_pipe();
  std::vector<SpawnRequest> requests{shell("setsid -f sh -c 'echo $$; exec sleep 1000'; exit $CODE")};
  requests[0].stdout_fd = writer.get();
  SECTION("all ended well") {
    requests[0].environment.push_back("CODE=0");
    fixture.group->start(requests);
    const pid_t daemon = std::stoi(fixture.wait_for_line(reader));
    fixture.run_until_gone();
    REQUIRE(is_alive(daemon));
    end_all_children(0ms, 10s);
  }
  SECTION("a failure") {
    requests[0].environment.push_back("CODE=1");
    fixture.group->start(requests);
    fixture.run_until_gone();
    REQUIRE_FALSE(has_children());
  }
}

TEST_CASE("stop sends the signal to the worker alone, and grace is honoured") {
  Fixture fixture;
  auto [reader, writer] = make_pipe();
  std::vector<SpawnRequest> requests{
      shell("trap 'sleep 0.2; echo worker; exit 9' TERM; "
            "sh -c 'trap \"echo child; exit\" TERM; echo up; while :; do sleep 0.01; done' & while :; do wait; done")};
  requests[0].stdout_fd = writer.get();
  fixture.group->start(requests);
  writer.reset();
  REQUIRE(fixture.wait_for_line(reader) == "up");
  fixture.group->stop(SIGTERM, 20s);
  REQUIRE(fixture.run_until_gone() < 10s);
  REQUIRE(fixture.wait_for_line(reader) == "worker");
  REQUIRE(fixture.wait_for_line(reader) == "child");
  REQUIRE(fixture.exits[0].exit_code == 9);
  REQUIRE(fixture.exits[0].stopped_by_us);
}

TEST_CASE("a trainer under a shell that died of the signal gets the same signal and the rest of the grace") {
  Fixture fixture;
  auto [reader, writer] = make_pipe();
  // The shell dies at once; its child needs a moment to save.
  std::vector<SpawnRequest> requests{
      shell("sh -c 'trap \"sleep 0.2; echo saved; exit 0\" TERM; echo up; while :; do sleep 0.01; done'; true")};
  requests[0].stdout_fd = writer.get();
  fixture.group->start(requests);
  writer.reset();
  REQUIRE(fixture.wait_for_line(reader) == "up");
  fixture.group->stop(SIGTERM, 10s);
  REQUIRE(fixture.run_until_gone() < 8s);
  REQUIRE(fixture.wait_for_line(reader) == "saved");
  REQUIRE(fixture.exits[0].signal == SIGTERM);
}

TEST_CASE("a worker that ignores the signal is killed when grace is over, and a second stop may only shorten it") {
  Fixture fixture;
  auto [reader, writer] = make_pipe();
  std::vector<SpawnRequest> requests{shell("trap '' TERM INT; echo up; while :; do sleep 0.01; done")};
  requests[0].stdout_fd = writer.get();
  fixture.group->start(requests);
  REQUIRE(fixture.wait_for_line(reader) == "up");
  fixture.group->stop(SIGTERM, 60s);
  fixture.group->stop(SIGINT, 100ms);
  fixture.group->stop(SIGTERM, 60s);
  REQUIRE(fixture.run_until_gone() < 10s);
  REQUIRE(fixture.exits[0].signal == SIGKILL);
}

TEST_CASE("a helper may clean up after a worker that had to be killed") {
  Fixture fixture({false, 5s, 30s});
  auto [reader, writer] = make_pipe();
  // The helper ignores SIGTERM and waits for its parent's end, as Python's resource tracker does.
  std::vector<SpawnRequest> requests{
      shell("trap '' TERM; sh -c 'parent=$PPID; echo up; while [ $(cut -d\" \" -f4 /proc/$$/stat) = $parent ]; do "
            "sleep 0.01; done; "
            "echo cleaned' & while :; do sleep 0.01; done")};
  requests[0].stdout_fd = writer.get();
  fixture.group->start(requests);
  writer.reset();
  REQUIRE(fixture.wait_for_line(reader) == "up");
  fixture.group->stop(SIGTERM, 50ms);
  REQUIRE(fixture.run_until_gone() < 4s);
  REQUIRE(fixture.wait_for_line(reader) == "cleaned");
}

TEST_CASE("a stopped worker is woken so that it can act on the stop signal") {
  Fixture fixture;
  auto [reader, writer] = make_pipe();
  std::vector<SpawnRequest> requests{shell("trap 'exit 5' TERM; echo up; kill -STOP $$; while :; do sleep 0.01; done")};
  requests[0].stdout_fd = writer.get();
  fixture.group->start(requests);
  REQUIRE(fixture.wait_for_line(reader) == "up");
  const pid_t pid = fixture.group->pids()[0];
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED) == 0);
  fixture.group->stop(SIGTERM, 20s);
  REQUIRE(fixture.run_until_gone() < 10s);
  REQUIRE(fixture.exits[0].exit_code == 5);
}

TEST_CASE("when one worker cannot be started the others are killed, and the failure is thrown") {
  Fixture fixture;
  std::vector<SpawnRequest> requests{shell("exec sleep 1000"), shell("exec sleep 1000")};
  requests[1].argv = {"/no/such/program"};
  REQUIRE_THROWS_AS(fixture.group->start(requests), StartupFailure);
  fixture.run_until_gone();
  REQUIRE(fixture.exits.size() == 1);
  REQUIRE_FALSE(has_children());
}

TEST_CASE("a round may follow a round") {
  Fixture fixture;
  for (int round = 0; round < 3; ++round) {
    fixture.start({"exit 0", "exit 0"});
    fixture.run_until_gone();
  }
  REQUIRE(fixture.exits.size() == 6);
  REQUIRE(fixture.gone == 3);
}

TEST_CASE("a group that goes out of scope takes its processes with it") {
  {
    Fixture fixture;
    fixture.start({"sleep 1000 & setsid sleep 1000"});
  }
  REQUIRE_FALSE(has_children());
}

TEST_CASE("suspending freezes workers with their descendants, and resuming thaws them") {
  Fixture fixture;
  auto [reader, writer] = make_pipe();
  std::vector<SpawnRequest> requests{shell("sh -c 'echo $$; exec sleep 1000' & wait")};
  requests[0].stdout_fd = writer.get();
  fixture.group->start(requests);
  const pid_t child = std::stoi(fixture.wait_for_line(reader));
  const auto wait_for_state = [](pid_t pid, char state) {
    const auto deadline = Clock::now() + 10s;
    while (Clock::now() < deadline && read_process_stat(pid)->state != state) sched_yield();
    return read_process_stat(pid)->state == state;
  };
  fixture.group->notify(SIGTSTP);
  REQUIRE(wait_for_state(fixture.group->pids()[0], 'T'));
  REQUIRE(wait_for_state(child, 'T'));
  fixture.group->notify(SIGCONT);
  REQUIRE(wait_for_state(fixture.group->pids()[0], 'S'));
  REQUIRE(wait_for_state(child, 'S'));
  fixture.group->kill_now();
  fixture.run_until_gone();
}

namespace {

/// A cgroup v1 freezer holds processes in uninterruptible sleep, where not even SIGKILL reaches them.
class Freezer {
 public:
  Freezer() : path_("/sys/fs/cgroup/freezer/tp-test-" + std::to_string(getpid())) {
    is_there_ = mkdir(path_.c_str(), 0755) == 0;
  }
  ~Freezer() {
    if (is_there_) rmdir(path_.c_str());
  }
  explicit operator bool() const { return is_there_; }

  void freeze(pid_t pid) const {
    std::ofstream(path_ + "/cgroup.procs") << pid;
    std::ofstream(path_ + "/freezer.state") << "FROZEN";
    for (std::string state; state != "FROZEN"; std::ifstream(path_ + "/freezer.state") >> state) sched_yield();
  }
  void thaw() const { std::ofstream(path_ + "/freezer.state") << "THAWED"; }

 private:
  std::string path_;
  bool is_there_;
};

}  // namespace

TEST_CASE("a worker that cannot be killed does not hold the launcher, and is named") {
  const Freezer freezer;
  if (!freezer) {
    WARN("skipped: needs root and a cgroup v1 freezer to hold a process in uninterruptible sleep");
    return;
  }
  Fixture fixture({false, 50ms, 200ms});
  fixture.start({"exec sleep 1000"});
  const pid_t worker = fixture.group->pids()[0];
  freezer.freeze(worker);
  fixture.group->stop(SIGTERM, 50ms);
  REQUIRE(fixture.run_until_gone() < 15s);
  REQUIRE(fixture.unkillable.size() == 1);
  REQUIRE(fixture.unkillable[0].pid == worker);
  freezer.thaw();
  REQUIRE(end_all_children(0ms, 10s).empty());
}

TEST_CASE("a worker stuck in uninterruptible sleep for longer than allowed ends the round, and is named") {
  const Freezer freezer;
  if (!freezer) {
    WARN("skipped: needs root and a cgroup v1 freezer to hold a process in uninterruptible sleep");
    return;
  }
  Fixture fixture({false, 50ms, 200ms, 100ms});
  fixture.start({"exec sleep 1000", "exec sleep 1000"});
  const pid_t worker = fixture.group->pids()[1];
  freezer.freeze(worker);
  REQUIRE(fixture.run_until_gone() < 15s);
  REQUIRE_FALSE(fixture.unkillable.empty());
  REQUIRE(fixture.unkillable[0].pid == worker);
  freezer.thaw();
  REQUIRE(end_all_children(0ms, 10s).empty());
}
