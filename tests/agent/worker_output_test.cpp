#include "agent/worker_output.hpp"

#include "tests/support/catch.hpp"

#include <asio/post.hpp>

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

using namespace tensorplay::agent;
using namespace std::chrono_literals;
using tensorplay::base::UniqueFd;
namespace fs = std::filesystem;

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// A folder, a loop, a console on two files in that folder, and workers that are shell scripts.
class Fixture {
 public:
  Fixture() {
    std::string folder = fs::temp_directory_path() / "worker_output_XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    folder_ = folder;
    out_ = UniqueFd(::open((folder_ + "/console_out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    err_ = UniqueFd(::open((folder_ + "/console_err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    plan.rdzv.run_id = "job";
    plan.logging.log_dir = folder_ + "/logs";
  }
  ~Fixture() { fs::remove_all(folder_); }

  void make(int stdout_fd = -1, int stderr_fd = -1) {
    console_ =
        std::make_unique<Console>(stdout_fd < 0 ? out_.get() : stdout_fd, stderr_fd < 0 ? err_.get() : stderr_fd);
    output_ = std::make_unique<WorkerOutput>(loop, plan, *console_);
  }

  pid_t start(int local_rank, const std::string& script, int round = 0) {
    stdio[local_rank] = output_->open(round, local_rank, local_rank);
    const WorkerStdio& given = stdio[local_rank];
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(given.in ? given.in.get() : ::open("/dev/null", O_RDONLY), 0);
      ::dup2(given.out ? given.out.get() : out_.get(), 1);
      ::dup2(given.err ? given.err.get() : err_.get(), 2);
      ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
      ::_exit(127);
    }
    stdio[local_rank].in.reset();
    stdio[local_rank].out.reset();
    stdio[local_rank].err.reset();
    pids_.push_back(pid);
    return pid;
  }

  /// Runs the loop until drained; returns whether the end came before `deadline`.
  bool finish(std::chrono::milliseconds limit = 5s, std::chrono::milliseconds deadline = 20s) {
    bool is_done = false;
    output_->drain(limit, [&] { is_done = true; });
    const auto end = std::chrono::steady_clock::now() + deadline;
    loop.restart();
    while (!is_done && std::chrono::steady_clock::now() < end) loop.run_one_for(100ms);
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
    pids_.clear();
    return is_done;
  }

  void close() {
    output_.reset();
    console_.reset();
  }

  WorkerOutput& output() { return *output_; }
  std::string shown() const { return contents(folder_ + "/console_out"); }
  std::string shown_err() const { return contents(folder_ + "/console_err"); }
  std::string log(int local_rank, const std::string& name, int round = 0) const {
    return contents(output_->run_folder() + "/attempt_" + std::to_string(round) + "/" + std::to_string(local_rank) +
                    "/" + name);
  }

  asio::io_context loop;
  LaunchPlan plan;
  std::map<int, WorkerStdio> stdio;
  std::string folder_;

 private:
  UniqueFd out_;
  UniqueFd err_;
  std::unique_ptr<Console> console_;
  std::unique_ptr<WorkerOutput> output_;
  std::vector<pid_t> pids_;
};

}  // namespace

TEST_CASE("a tee'd stream is whole in its file and prefixed on the console") {
  Fixture f;
  f.plan.nproc_per_node = 2;
  f.plan.logging.tee.all = kStdout;
  f.make();
  f.start(0, "echo a; printf b");
  f.start(1, "printf 'c\\nd\\n'");
  REQUIRE(f.finish());
  CHECK(sorted_lines(f.shown()) ==
        std::vector<std::string>{"[default0]:a", "[default0]:b", "[default1]:c", "[default1]:d"});
  CHECK(f.log(0, "stdout.log") == "a\nb");
  CHECK(f.log(1, "stdout.log") == "c\nd\n");
  CHECK_FALSE(fs::exists(f.output().run_folder() + "/attempt_0/0/stderr.log"));
}

TEST_CASE("a redirected stream goes to its file and nowhere else") {
  Fixture f;
  f.plan.logging.redirects.all = kStdout | kStderr;
  f.make();
  f.start(0, "echo out; echo err >&2");
  REQUIRE(f.finish());
  CHECK(f.log(0, "stdout.log") == "out\n");
  CHECK(f.log(0, "stderr.log") == "err\n");
  CHECK(f.shown().empty());
  CHECK(f.shown_err().empty());
  CHECK(f.output().last_lines(0) == std::vector<std::string>{"err"});
  CHECK(f.stdio[0].error_file == f.output().run_folder() + "/attempt_0/0/error.json");
}

TEST_CASE("without redirection stderr passes through unchanged and its last lines are kept") {
  Fixture f;
  f.plan.logging.log_dir.clear();
  f.make();
  f.start(0, "i=0; while [ $i -lt 50 ]; do echo line $i >&2; i=$((i+1)); done; printf 'no newline' >&2");
  REQUIRE(f.finish());
  std::string expected;
  for (int i = 0; i < 50; ++i) expected += "line " + std::to_string(i) + "\n";
  CHECK(f.shown_err() == expected + "no newline");
  const auto tail = f.output().last_lines(0, 3);
  CHECK(tail == std::vector<std::string>{"line 48", "line 49", "no newline"});
  CHECK(f.output().run_folder().empty());
}

TEST_CASE("nothing is made that nobody asked for, and the error folder is private and goes away") {
  Fixture f;
  f.plan.logging.log_dir.clear();
  f.make();
  f.start(0, "true");
  const std::string error_file = f.stdio[0].error_file;
  struct stat status = {};
  REQUIRE(::stat(fs::path(error_file).parent_path().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  REQUIRE(f.finish());
  f.close();
  CHECK_FALSE(fs::exists(fs::path(error_file).parent_path()));
  CHECK_FALSE(fs::exists(f.folder_ + "/logs"));
}

TEST_CASE("log folder /dev/null keeps nothing and prefixes nothing") {
  Fixture f;
  f.plan.logging.log_dir = "/dev/null";
  f.plan.logging.tee.all = kStdout | kStderr;
  f.make();
  f.start(0, "echo out; echo err >&2");
  REQUIRE(f.finish());
  CHECK(f.stdio[0].error_file.empty());
  CHECK(f.shown() == "out\n");
  CHECK(f.shown_err() == "err\n");
}

TEST_CASE("ranks outside the filter are in their files and not on the console") {
  Fixture f;
  f.plan.nproc_per_node = 3;
  f.plan.logging.tee.by_local_rank = {{0, kStdout}, {1, kStdout}};
  f.plan.logging.local_ranks_filter = {0};
  f.plan.logging.duplicate_stdout_filters = {"loss"};
  f.make();
  for (int rank = 0; rank < 3; ++rank) f.start(rank, "echo loss; echo grave >&2; exit 3");
  REQUIRE(f.finish());
  CHECK(f.shown() == "[default0]:loss\n");
  CHECK(f.shown_err() == "grave\n");
  CHECK(f.log(1, "stdout.log") == "loss\n");
  CHECK(contents(f.output().run_folder() + "/attempt_0/filtered_stdout.log") == "[default0]:loss\n");
  CHECK(f.output().last_lines(2) == std::vector<std::string>{"grave"});
}

TEST_CASE("lines that hold one of the filters are copied to the side file") {
  Fixture f;
  f.plan.logging.tee.all = kStdout | kStderr;
  f.plan.logging.duplicate_stdout_filters = {"loss", "acc"};
  f.plan.logging.duplicate_stderr_filters = {"warn"};
  f.make();
  f.start(0, "echo loss 1; echo other; echo acc 2; echo default0 >&2; echo warning >&2");
  REQUIRE(f.finish());
  const std::string folder = f.output().run_folder() + "/attempt_0/";
  CHECK(contents(folder + "filtered_stdout.log") == "[default0]:loss 1\n[default0]:acc 2\n");
  CHECK(contents(folder + "filtered_stderr.log") == "[default0]:warning\n");
}

TEST_CASE("what a killed worker had written is not lost") {
  Fixture f;
  f.plan.logging.tee.all = kStdout;
  f.make();
  f.start(0, "seq 1 20000; kill -9 $$");
  REQUIRE(f.finish());
  const std::string all = f.log(0, "stdout.log");
  CHECK(std::count(all.begin(), all.end(), '\n') == 20000);
  CHECK(sorted_lines(f.shown()).size() == 20000);
}

TEST_CASE("a round's files stay when the next one starts, and no descriptor is left behind") {
  Fixture f;
  f.plan.nproc_per_node = 2;
  f.plan.logging.tee.all = kStdout | kStderr;
  f.make();
  int before = 0;
  for (int round = 0; round < 100; ++round) {
    f.start(0, "echo zero", round);
    f.start(1, "echo one >&2", round);
    REQUIRE(f.finish());
    if (round == 4) before = open_descriptors();
  }
  CHECK(open_descriptors() <= before);
  CHECK(f.log(0, "stdout.log", 0) == "zero\n");
  CHECK(f.log(1, "stderr.log", 99) == "one\n");
}

TEST_CASE("a daemon that holds the pipe does not hold up the end") {
  Fixture f;
  f.plan.logging.tee.all = kStdout;
  f.make();
  int stopper[2];
  REQUIRE(::pipe(stopper) == 0);
  // The daemon lives until our end of the pipe is closed.
  f.start(0, "(read x <&" + std::to_string(stopper[0]) + ") & echo before");
  CHECK(f.finish(300ms, 10s));
  ::close(stopper[1]);
  ::close(stopper[0]);
  CHECK(f.shown() == "[default0]:before\n");
}

TEST_CASE("a console that nobody reads holds up its worker, not the loop and not the files") {
  Fixture f;
  f.plan.logging.tee.all = kStdout;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  f.make(write_end.get());
  f.start(0, "head -c 3000000 /dev/zero | tr '\\0' 'x'");
  bool loop_is_alive = false;
  asio::post(f.loop, [&] { loop_is_alive = true; });
  CHECK(f.finish(500ms, 15s));
  CHECK(loop_is_alive);
  CHECK(f.log(0, "stdout.log").size() >= 256 * 1024);
  f.close();  // Returns though the console's thread is in the middle of a write.
}

TEST_CASE("a console whose reader has gone costs a line and not the job") {
  Fixture f;
  f.plan.logging.tee.all = kStdout;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  ::close(ends[0]);
  const UniqueFd write_end(ends[1]);
  f.make(write_end.get());
  f.start(0, "seq 1 100000");
  REQUIRE(f.finish());
  const std::string all = f.log(0, "stdout.log");
  CHECK(std::count(all.begin(), all.end(), '\n') == 100000);
  CHECK(f.shown_err().find("tprun: stdout: Broken pipe") == 0);
  CHECK(sorted_lines(f.shown_err()).size() == 1);
}

TEST_CASE("a full disk costs one line") {
  Fixture f;
  f.plan.logging.tee.all = kStdout;
  UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  f.make(full.get());
  f.start(0, "seq 1 1000");
  REQUIRE(f.finish());
  CHECK(f.shown_err().find("tprun: stdout: No space left on device") == 0);
  CHECK(sorted_lines(f.shown_err()).size() == 1);
  CHECK(sorted_lines(f.log(0, "stdout.log")).size() == 1000);
}

TEST_CASE("stdout and stderr on one file share one writer, so their lines stay whole") {
  Fixture f;
  f.plan.nproc_per_node = 4;
  f.plan.logging.tee.all = kStdout | kStderr;
  const std::string both = f.folder_ + "/both";
  const UniqueFd file(::open(both.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0600));
  f.make(file.get(), file.get());
  for (int rank = 0; rank < 4; ++rank) {
    f.start(rank, "i=0; while [ $i -lt 2000 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done");
  }
  REQUIRE(f.finish());
  const auto lines = sorted_lines(contents(both));
  REQUIRE(lines.size() == 16000);
  for (const auto& line : lines) REQUIRE(line.substr(0, 8) == "[default");
}

TEST_CASE("unfinished lines of several workers are not mixed on a stderr that passes through") {
  Fixture f;
  f.plan.nproc_per_node = 4;
  f.plan.logging.log_dir.clear();
  f.make();
  for (int rank = 0; rank < 4; ++rank) {
    f.start(rank, "i=0; while [ $i -lt 500 ]; do printf 'aaa' >&2; printf 'bbb\\n' >&2; i=$((i+1)); done");
  }
  REQUIRE(f.finish());
  const auto lines = sorted_lines(f.shown_err());
  // A worker that is held up between its two writes is waited for a moment only, hence not all.
  CHECK(std::count(lines.begin(), lines.end(), "aaabbb") > 1900);
  const std::string all = f.shown_err();
  CHECK(std::count(all.begin(), all.end(), 'a') == 6000);
  CHECK(std::count(all.begin(), all.end(), '\n') == 2000);
}

TEST_CASE("stdin goes to whom it was promised") {
  const auto has_stdin = [](StdinMode mode, int nproc, int rank) {
    Fixture f;
    f.plan.nproc_per_node = nproc;
    f.plan.stdin_mode = mode;
    f.make();
    return static_cast<bool>(f.output().open(0, rank, rank).in);
  };
  CHECK(has_stdin(StdinMode::kDefault, 1, 0));
  CHECK(has_stdin(StdinMode::kDefault, 2, 0));
  CHECK_FALSE(has_stdin(StdinMode::kDefault, 2, 1));
  CHECK_FALSE(has_stdin(StdinMode::kNone, 1, 0));
  CHECK(has_stdin(StdinMode::kFirst, 2, 0));
  CHECK_FALSE(has_stdin(StdinMode::kFirst, 2, 1));
  CHECK(has_stdin(StdinMode::kAll, 2, 1));
}

TEST_CASE("a log folder that cannot be made is an error that names it") {
  Fixture f;
  f.plan.logging.log_dir = f.folder_ + "/console_out/logs";
  f.make();
  CHECK_THROWS_WITH(f.output().open(0, 0, 0),
                    Catch::Matchers::Contains("console_out/logs") && Catch::Matchers::Contains("Not a directory"));
}
