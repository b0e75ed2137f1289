#include "tensorplay/distributed.hpp"
#include "tensorplay/multiprocessing.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <poll.h>
#include <set>
#include <sstream>
#include <thread>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/wait.h>

using namespace tensorplay::multiprocessing;
using tensorplay::testing::TemporaryDirectory;
using namespace std::chrono_literals;

namespace {

/// Made before main: a child has its own.
const std::string g_static_object = "made by " + std::to_string(::getpid());

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A pipe whose ends children inherit.
struct Pipe {
  std::array<int, 2> ends{};
  Pipe() { REQUIRE(::pipe(ends.data()) == 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  int read_int() const {
    pollfd waited{ends[0], POLLIN, 0};
    REQUIRE(::poll(&waited, 1, 30'000) == 1);
    int value = 0;
    REQUIRE(::read(ends[0], &value, sizeof value) == sizeof value);
    return value;
  }
};

void write_int(int fd, int value) {
  if (::write(fd, &value, sizeof value) != sizeof value) std::abort();
}

bool ends_within(int pid, std::chrono::milliseconds limit) {
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) return true;
  pollfd waited{pidfd, POLLIN, 0};
  const bool has_ended = ::poll(&waited, 1, static_cast<int>(limit.count())) == 1;
  ::close(pidfd);
  return has_ended;
}

// What children do. Plain functions: they are found again in another run of this program.

void note(int index, const std::string& folder, const std::vector<double>& numbers, std::optional<int> extra) {
  std::ofstream(folder + "/" + std::to_string(index))
      << numbers.at(1) << ' ' << extra.value_or(-1) << ' ' << std::getenv("TP_SPAWN_TEST") << ' '
      << (std::getenv("RANK") == nullptr) << ' ' << (g_static_object == "made by " + std::to_string(::getpid()));
}

void pause_until_ended() {
  ::signal(SIGTERM, SIG_DFL);  // A forked child has this program's handlers.
  while (true) ::pause();
}

void throw_in_one(int index, int who) {
  if (index != who) pause_until_ended();
  throw std::out_of_range("no such sample");
}

void exit_in_one(int index, int code) {
  if (index != 1) pause_until_ended();
  std::exit(code);
}

void die_in_one(int index, int signal) {
  if (index != 1) pause_until_ended();
  ::raise(signal);
}

void ignore_sigterm_and_fail_in_one(int index, int fd) {
  if (index == 1) {
    ::signal(SIGTERM, SIG_IGN);
    write_int(fd, 1);
    while (true) ::pause();
  }
  int ignored = 0;
  [[maybe_unused]] const auto count = ::read(fd - 1, &ignored, sizeof ignored);
  throw std::runtime_error("first");
}

void pause_forever(int, int fd) {
  write_int(fd, ::getpid());
  while (true) ::pause();
}

void start_a_child_and_pause(int, int fd) {
  // In a thread that ends: the child stays all the same.
  ProcessContextPtr context;
  std::thread([&] { context = spawn(&pause_forever, {.join = false}, fd); }).join();
  ::signal(SIGINT, SIG_IGN);
  while (true) ::pause();
}

void do_nothing(int) {}

/// The specification's example: rank 1 never comes to the barrier of a gloo group beside another default group.
void miss_a_monitored_barrier(int rank, int port) {
  namespace dist = tensorplay::distributed;
  auto store = std::make_shared<dist::TCPStore>(
      dist::TCPStoreOptions{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port)});
  dist::init_process_group({.backend = "gloo", .world_size = 2, .rank = rank, .store = store});
  const auto group_gloo = dist::new_group({.backend = "gloo"});
  if (rank != 1) dist::monitored_barrier({.group = group_gloo, .timeout = 2s});
  if (rank == 1) ::pause();
}

void start_a_grandchild(int) {
  spawn(&do_nothing, {.nprocs = 1});
}

}  // namespace

TEST_CASE("each child runs the function with its index and the arguments, and no rank is invented") {
  const TemporaryDirectory folder;
  ::setenv("TP_SPAWN_TEST", "inherited", 1);
  const char* method = GENERATE("spawn", "fork");
  REQUIRE(start_processes(&note, {.nprocs = 3, .start_method = method}, folder.path(), std::vector<double>{1, 2.5},
                          std::optional<int>(7)) == nullptr);
  for (const char* index : {"0", "1", "2"}) {
    REQUIRE(read_file(folder.file(index)) == std::string("2.5 7 inherited 1 ") + (method[0] == 's' ? "1" : "0"));
  }
}

TEST_CASE("children start while threads of the parent hold locks") {
  std::mutex mutex;
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!is_over) std::free(std::malloc(100));
    });
  }
  for (int i = 0; i < 5; ++i) spawn(&do_nothing, {.nprocs = 2});
  is_over = true;
  for (auto& thread : threads) thread.join();
}

TEST_CASE("no processes is a success") {
  REQUIRE(spawn(&do_nothing, {.nprocs = 0}) == nullptr);
  REQUIRE(spawn(&do_nothing, {.nprocs = -1, .join = false})->join());
}

TEST_CASE("an exception's type and text come back, and the other children are ended") {
  const char* method = GENERATE("spawn", "fork");
  const auto context = start_processes(&throw_in_one, {.nprocs = 3, .join = false, .start_method = method}, 2);
  const auto pids = context->pids();
  REQUIRE(std::set<int>(pids.begin(), pids.end()).size() == 3);
  try {
    while (!context->join()) {
    }
    FAIL("no error");
  } catch (const ProcessRaisedException& error) {
    REQUIRE(std::string(error.what()) ==
            "\n\n-- Process 2 terminated with the following error:\nstd::out_of_range: no such sample");
    REQUIRE(error.error_index == 2);
    REQUIRE(error.error_pid == pids[2]);
  }
  for (const int pid : pids) REQUIRE(::kill(pid, 0) != 0);
}

TEST_CASE("an exit code and a signal come back by name") {
  try {
    spawn(&exit_in_one, {.nprocs = 2}, 3);
    FAIL("no error");
  } catch (const ProcessExitedException& error) {
    REQUIRE(std::string(error.what()) == "process 1 terminated with exit code 3");
    REQUIRE(error.exit_code == 3);
    REQUIRE(error.signal_name.empty());
  }
  try {
    spawn(&die_in_one, {.nprocs = 2}, SIGKILL);
    FAIL("no error");
  } catch (const ProcessExitedException& error) {
    REQUIRE(std::string(error.what()) == "process 1 terminated with signal SIGKILL");
    REQUIRE(error.exit_code == -SIGKILL);
    REQUIRE(error.signal_name == "SIGKILL");
  }
  try {
    spawn(&exit_in_one, {.nprocs = 2}, 1);
    FAIL("no error");
  } catch (const ProcessExitedException& error) {
    REQUIRE(error.exit_code == 1);  // Code 1 without an exception's text.
  }
}

TEST_CASE("a child that ignores SIGTERM is killed when its grace is over") {
  const Pipe pipe;
  const auto context = spawn(&ignore_sigterm_and_fail_in_one, {.nprocs = 2, .join = false}, pipe.ends[1]);
  REQUIRE_THROWS_AS(context->join(std::nullopt, 200ms), ProcessRaisedException);
  for (const int pid : context->pids()) REQUIRE(::kill(pid, 0) != 0);
}

TEST_CASE("join with a timeout says that some are left, and the end of the context ends them") {
  const Pipe pipe;
  std::vector<int> pids;
  {
    const auto context = spawn(&pause_forever, {.nprocs = 2, .join = false}, pipe.ends[1]);
    pids = context->pids();
    std::set<int> told = {pipe.read_int(), pipe.read_int()};
    REQUIRE(told == std::set<int>(pids.begin(), pids.end()));
    REQUIRE_FALSE(context->join(1ms));
  }
  for (const int pid : pids) REQUIRE(::kill(pid, 0) != 0);
}

TEST_CASE("nothing is left when the parent is killed, though it started the child from a thread that has ended") {
  const Pipe pipe;
  const auto context = spawn(&start_a_child_and_pause, {.join = false}, pipe.ends[1]);
  const int grandchild = pipe.read_int();
  const bool is_stopped = GENERATE(false, true);
  if (is_stopped) ::kill(grandchild, SIGSTOP);
  ::kill(context->pids().front(), SIGKILL);
  REQUIRE(ends_within(grandchild, 30s));
  REQUIRE_THROWS_AS(context->join(), ProcessExitedException);
}

TEST_CASE("the specification's example of a rank that misses a monitored barrier") {
  namespace dist = tensorplay::distributed;
  const dist::TCPStore store({.host = "127.0.0.1", .port = 0, .is_master = true});
  try {
    spawn(&miss_a_monitored_barrier, {.nprocs = 2}, static_cast<int>(store.port()));
    FAIL("no error");
  } catch (const ProcessRaisedException& error) {
    REQUIRE(error.error_index == 0);
    REQUIRE_THAT(error.what(), Catch::Contains("Rank 1 failed to pass monitoredBarrier in 2000 ms"));
  }
}

TEST_CASE("a closure goes by fork alone, a foreign start method nowhere, and a daemon starts nothing") {
  const TemporaryDirectory folder;
  const auto closure = [&](int index) { std::ofstream(folder.file(std::to_string(index))) << index; };
  start_processes(closure, {.nprocs = 2, .start_method = "fork"});
  REQUIRE(read_file(folder.file("1")) == "1");
  REQUIRE_THROWS_WITH(start_processes(closure, {}), Catch::Contains("plain function"));
  REQUIRE_THROWS_WITH(start_processes(&do_nothing, {.start_method = "forkserver"}),
                      Catch::Contains("cannot find context for 'forkserver'"));
  REQUIRE_NOTHROW(spawn(&do_nothing, {.start_method = "fork"}));  // Told in a warning.
  REQUIRE_NOTHROW(spawn(&start_a_grandchild));
  REQUIRE_THROWS_WITH(spawn(&start_a_grandchild, {.daemon = true}),
                      Catch::Contains("daemonic processes are not allowed to have children"));
}
