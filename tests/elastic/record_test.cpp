#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <sys/wait.h>

namespace {

using Catch::Contains;

struct Ending {
  int status = 0;  ///< As waitpid gives it.
  std::string error_text;
  nlohmann::json error;  ///< The error file; null when there is none.
  std::string seen;      ///< What the worker itself saw in it.
  std::string stderr_text;

  std::string message() const { return error["message"]["message"]; }
  std::string call_stack() const { return error["message"]["extraInfo"]["py_callstack"]; }
  double thrown_at() const { return error["message"]["extraInfo"]["thrown_at"]; }
};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Ending run_worker(const std::string& way) {
  const std::string folder =
      "/tmp/tp_record_test_" + std::to_string(::getpid()) + "_" + std::to_string(std::random_device{}());
  std::filesystem::create_directory(folder);
  const std::string error_file = folder + "/error.json";
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("TORCHELASTIC_ERROR_FILE", error_file.c_str(), 1);
    ::setenv("SEEN_FILE", (folder + "/seen.json").c_str(), 1);
    ::dup2(::open((folder + "/stderr").c_str(), O_WRONLY | O_CREAT, 0644), STDERR_FILENO);
    ::execl(FAILING_WORKER, FAILING_WORKER, way.c_str(), nullptr);
    ::_exit(127);
  }
  Ending ending;
  ::waitpid(child, &ending.status, 0);
  ending.error_text = read_file(error_file);
  if (!ending.error_text.empty()) ending.error = nlohmann::json::parse(ending.error_text);
  ending.seen = read_file(folder + "/seen.json");
  ending.stderr_text = read_file(folder + "/stderr");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files += entry.is_regular_file();
  CHECK(files <= 3);  // No temporary file is left.
  std::filesystem::remove_all(folder);
  return ending;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

TEST_CASE("a worker that ends well, or by a code of its own, leaves no error file") {
  REQUIRE(run_worker("well").error.is_null());
  const auto coded = run_worker("code");
  REQUIRE(WEXITSTATUS(coded.status) == 7);
  REQUIRE(coded.error.is_null());
}

TEST_CASE("an exception's type, text and time are in the error file, in the form of torch's record") {
  const double before = now();
  const auto ending = run_worker("throw");
  REQUIRE(WEXITSTATUS(ending.status) == 1);
  REQUIRE(ending.message() == "std::runtime_error: no \"data\"\n");
  REQUIRE(ending.thrown_at() >= before);
  REQUIRE(ending.thrown_at() <= now());
  const std::string seconds = ending.error["message"]["extraInfo"]["timestamp"];
  REQUIRE(seconds == std::to_string(static_cast<long long>(ending.thrown_at())));
  REQUIRE_THAT(ending.stderr_text, Contains("std::runtime_error: no \"data\""));
}

TEST_CASE("anything that can be thrown is told") {
  REQUIRE(run_worker("throw-int").message() == "int");
}

TEST_CASE("an exception that was dealt with earlier is not taken for the one that ends the worker") {
  REQUIRE(run_worker("throw-later").message() == "std::out_of_range: the real one");
}

TEST_CASE("a group that an exception unwinds through writes the error file before it closes") {
  const auto ending = run_worker("throw-through-group");
  REQUIRE_THAT(ending.seen, Contains("std::runtime_error: thrown with a group"));
  const auto seen = nlohmann::json::parse(ending.seen);
  // Both tell the time of the throw, not of the writing.
  REQUIRE(seen["message"]["extraInfo"]["thrown_at"] == ending.thrown_at());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // Sanitizers handle these signals themselves.

TEST_CASE("a crash leaves a native stack with readable names, and the process ends by its signal") {
  const auto ending = run_worker("segv");
  REQUIRE(WIFSIGNALED(ending.status));
  REQUIRE(WTERMSIG(ending.status) == SIGSEGV);
  REQUIRE(ending.message() == "SIGSEGV");
  REQUIRE_THAT(ending.call_stack(), Contains("run("));
  REQUIRE_THAT(ending.stderr_text, Contains("dies of SIGSEGV") && Contains("main"));
}

TEST_CASE("a stack that overflowed is told too") {
  const auto ending = run_worker("overflow");
  REQUIRE(WTERMSIG(ending.status) == SIGSEGV);
  REQUIRE(ending.message() == "SIGSEGV");
}

TEST_CASE("an abort ends the process by SIGABRT and leaves its stack") {
  const auto ending = run_worker("abort");
  REQUIRE(WTERMSIG(ending.status) == SIGABRT);
  REQUIRE(ending.message() == "SIGABRT");
  REQUIRE_THAT(ending.call_stack(), Contains("run("));
}

TEST_CASE("an exception that nobody catches is told with its text") {
  const auto ending = run_worker("terminate");
  REQUIRE(WTERMSIG(ending.status) == SIGABRT);
  REQUIRE(ending.message() == "std::runtime_error: nobody catches this");
}

#endif
