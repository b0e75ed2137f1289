#include "agent/oom_watch.hpp"

#include "tests/support/catch.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace tensorplay::agent;
using tensorplay::rendezvous::WorkerFailure;
namespace fs = std::filesystem;

namespace {

/// A /proc and /sys of the test's own.
class FakeRoot {
 public:
  FakeRoot() {
    std::string pattern = (fs::temp_directory_path() / "tp_oom_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~FakeRoot() { fs::remove_all(path_); }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories(fs::path(path_ + file).parent_path());
    std::ofstream(path_ + file) << text;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

WorkerFailure killed(int rank, double at) {
  WorkerFailure f;
  f.rank = rank;
  f.signal = SIGKILL;
  f.ended_at = at;
  return f;
}

WorkerFailure exited(int rank, double at, const std::string& message = "") {
  WorkerFailure f;
  f.rank = rank;
  f.exit_code = 1;
  f.ended_at = at;
  f.message = message;
  return f;
}

}  // namespace

TEST_CASE("kills are counted in the memory cgroup of version 1 and of version 2") {
  FakeRoot root;
  SECTION("version 1") {
    root.write("/proc/self/cgroup", "5:devices:/\n4:cpu,memory:/job/a\n0::/\n");
    const std::string file = "/sys/fs/cgroup/memory/job/a/memory.oom_control";
    root.write(file, "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    OomWatch watch(root.path());
    REQUIRE(watch.kills().count == 0);
    root.write(file, "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
    REQUIRE(watch.kills().count == 2);
    REQUIRE_FALSE(watch.kills().is_machine_wide);
    watch.begin();
    REQUIRE(watch.kills().count == 0);
  }
  SECTION("version 2, seen from a container whose own group is the root of its mount") {
    root.write("/proc/self/cgroup", "0::/docker/abc\n");
    root.write("/sys/fs/cgroup/memory.events", "low 0\noom 1\noom_kill 0\noom_group_kill 0\n");
    OomWatch watch(root.path());
    root.write("/sys/fs/cgroup/memory.events", "low 0\noom 1\noom_kill 1\noom_group_kill 1\n");
    REQUIRE(watch.kills().count == 1);
  }
}

TEST_CASE("without a memory cgroup the machine's own counter is read, and known as such") {
  FakeRoot root;
  root.write("/proc/self/cgroup", "0::/\n");
  root.write("/proc/vmstat", "pgfault 7\noom_kill 1\n");
  OomWatch watch(root.path());
  root.write("/proc/vmstat", "pgfault 9\noom_kill 2\n");
  REQUIRE(watch.kills().count == 1);
  REQUIRE(watch.kills().is_machine_wide);
}

TEST_CASE("where there is no counter at all nothing is ever counted") {
  FakeRoot root;
  OomWatch watch(root.path());
  REQUIRE(watch.kills().count == 0);
}

TEST_CASE("an OOM kill belongs to the worker that SIGKILL ended first, and not to one we killed") {
  auto ours = killed(0, 1);
  ours.stopped_by_us = true;
  std::vector<WorkerFailure> failures = {ours, killed(1, 3), killed(2, 2)};
  mark_oom(failures, {1, false});
  REQUIRE_FALSE(failures[0].out_of_memory);
  REQUIRE_FALSE(failures[1].out_of_memory);
  REQUIRE(failures[2].out_of_memory);
  mark_oom(failures, {2, true});
  REQUIRE(failures[1].out_of_memory);
}

TEST_CASE("an OOM kill of a worker's child belongs to the worker that failed by it, not to its victims") {
  std::vector<WorkerFailure> failures = {exited(0, 1, "Connection closed by peer"),
                                         exited(1, 2, "RuntimeError: DataLoader worker is killed by signal: Killed.")};
  mark_oom(failures, {1, false});
  REQUIRE_FALSE(failures[0].out_of_memory);
  REQUIRE(failures[1].out_of_memory);
  mark_oom(failures, {1, true});  // somewhere on the machine: no evidence against a worker that was not killed
  REQUIRE_FALSE(failures[1].out_of_memory);
}

TEST_CASE("no kill, no mark") {
  std::vector<WorkerFailure> failures = {killed(0, 1)};
  mark_oom(failures, {0, false});
  REQUIRE_FALSE(failures[0].out_of_memory);
}
