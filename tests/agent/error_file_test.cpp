#include "agent/error_file.hpp"

#include "agent/atomic_file.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tests/support/catch.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/stat.h>

using namespace tensorplay::agent;
using tensorplay::rendezvous::WorkerFailure;
namespace fs = std::filesystem;

namespace {

const std::string kTorch =
    R"({"message": {"message": "ValueError: no data", "extraInfo": {"py_callstack": "Traceback\n  x\nValueError: no data",)"
    R"( "timestamp": "1700000000"}}})";

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Folder {
 public:
  Folder() {
    std::string path = fs::temp_directory_path() / "error_file_XXXXXX";
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("torch's form gives message, call stack and time") {
  const auto read = parse_error_text(kTorch);
  REQUIRE(read);
  CHECK(read->message == "ValueError: no data");
  CHECK(read->traceback == "Traceback\n  x\nValueError: no data");
  CHECK(read->thrown_at == 1700000000.0);
  CHECK(read->is_complete);
}

TEST_CASE("forms that are read") {
  struct Case {
    std::string text;
    std::string message;
    std::optional<double> thrown_at;
  };
  const std::vector<Case> cases = {
      {R"({"message": "boom", "timestamp": 12})", "boom", 12.0},
      {R"({"message": "boom", "timestamp": "12.5"})", "boom", 12.5},
      {R"({"timestamp": 1700000000.25, "message": {"message": "boom"}})", "boom", 1700000000.25},
      {R"({"message": {"message": "boom", "extraInfo": {"thrown_at": 12.25, "timestamp": "12"}}})", "boom", 12.25},
      {R"({"message": {"message": "boom", "extraInfo": {"timestamp": "12", "thrown_at": 12.25}}})", "boom", 12.25},
      {R"({"message": "boom", "timestamp": 0})", "boom", std::nullopt},
      {R"({"message": "boom", "timestamp": -3})", "boom", std::nullopt},
      {R"({"message": "boom", "timestamp": 1e300})", "boom", std::nullopt},
      {R"({"message": "boom", "timestamp": [1]})", "boom", std::nullopt},
      {R"({"message": "boom", "timestamp": "soon"})", "boom", std::nullopt},
      {R"({"other": {"message": "not this"}, "message": "boom"})", "boom", std::nullopt},
      {R"("boom")", "boom", std::nullopt},
      {"RuntimeError: words, no JSON\n", "RuntimeError: words, no JSON", std::nullopt},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    const auto read = parse_error_text(c.text);
    REQUIRE(read);
    CHECK(read->message == c.message);
    CHECK(read->thrown_at == c.thrown_at);
  }
}

TEST_CASE("what a terminal cannot show does not reach it, and numbers stay as they were written") {
  const auto message = [](const std::string& text) {
    const auto read = parse_error_text(text);
    return read ? read->message : "(none)";
  };
  CHECK(message(R"({"message": 5})") == "5");
  CHECK(message(R"({"message": 5.50})") == "5.50");
  CHECK(message(R"({"message": "a\u0000b\u0007\u001b[31mred\u001b[0m\u009b2J\r\nnext\tline"})") ==
        "abred2J\nnext\tline");
  CHECK(message(R"({"message": "\"no data\""})") == "no data");
  CHECK(message(R"({"message": "'a' and 'b'"})") == "'a' and 'b'");
  CHECK(message("words \x1b[1mwith colour\xff") == "words with colour?");
  const auto traceback = parse_error_text(R"({"traceback": "one\u001b[2K\ntwo\u0000"})");
  REQUIRE(traceback);
  CHECK(traceback->traceback == "one\ntwo");
}

TEST_CASE("texts that say nothing") {
  for (const std::string& text : {std::string(), std::string(" \n"), std::string("{}"), std::string("[1, 2]"),
                                  std::string(R"({"loss": 3, "step": {"message": 1, "x": {}}})"), std::string("null{"),
                                  std::string("{"), std::string("\x00\x01\x02", 3), std::string(100000, '[')}) {
    INFO(text.substr(0, 40));
    const auto read = parse_error_text(text);
    CHECK((!read || text == "null{"));
  }
}

TEST_CASE("of a half-written file what was written is saved, wherever it broke off") {
  for (std::size_t length = 0; length <= kTorch.size(); ++length) {
    const auto read = parse_error_text(kTorch.substr(0, length));
    INFO(kTorch.substr(0, length));
    if (length > kTorch.find("no data") + 8) {
      REQUIRE(read);
      CHECK(read->message == "ValueError: no data");
    }
    if (length < kTorch.size() && read) CHECK_FALSE(read->is_complete);
  }
  const auto broken = parse_error_text(R"({"message": {"message": "RuntimeError: CUDA out of)");
  REQUIRE(broken);
  CHECK(broken->message == "RuntimeError: CUDA out of");
}

TEST_CASE("a missing file, a folder, a FIFO and an empty file say nothing and block nobody") {
  Folder folder;
  CHECK_FALSE(read_error_file(""));
  CHECK_FALSE(read_error_file(folder / "missing"));
  fs::create_directory(folder / "folder");
  CHECK_FALSE(read_error_file(folder / "folder"));
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK_FALSE(read_error_file(folder / "fifo"));
  std::ofstream(folder / "empty").close();
  CHECK_FALSE(read_error_file(folder / "empty"));
}

TEST_CASE("a huge file costs a megabyte and gives its message") {
  Folder folder;
  {
    std::ofstream file(folder / "huge");
    file << R"({"message": {"message": ")" << std::string(100000, 'm') << R"(", "extraInfo": {"py_callstack": ")";
    for (int i = 0; i < 400; ++i) file << std::string(10000, 'x');
    file << R"("}}})";
  }
  const auto read = read_error_file(folder / "huge");
  REQUIRE(read);
  CHECK(read->message.size() < 20000);
  CHECK(read->message.substr(0, 3) == "mmm");
  CHECK(read->traceback.size() < 40000);
  CHECK_FALSE(read->is_complete);
}

TEST_CASE("a failure takes over what its error file says") {
  Folder folder;
  std::ofstream(folder / "error.json") << kTorch;
  WorkerFailure failure;
  add_error_file(failure, folder / "error.json");
  CHECK(failure.message == "ValueError: no data");
  CHECK(failure.thrown_at == 1700000000.0);
  CHECK(failure.error_file == folder / "error.json");
  WorkerFailure other;
  add_error_file(other, folder / "missing");
  CHECK(other.error_file.empty());
}

TEST_CASE("the launcher above gets torch's form with the error code") {
  Folder folder;
  WorkerFailure failure;
  failure.rank = 3;
  failure.signal = 11;
  failure.ended_at = 1700000001.9;
  write_parent_error_file(folder / "reply.json", failure);
  const auto object = nlohmann::json::parse(contents(folder / "reply.json"));
  CHECK(object["message"]["errorCode"] == -11);
  CHECK(object["message"]["message"] == "rank 3 died of SIGSEGV");
  CHECK(object["message"]["extraInfo"]["timestamp"] == "1700000001");
  failure.signal = 0;
  failure.exit_code = 7;
  failure.message = "ValueError: no data";
  failure.traceback = "stack";
  write_parent_error_file(folder / "reply.json", failure);
  const auto read = read_error_file(folder / "reply.json");
  REQUIRE(read);
  CHECK(read->message == "ValueError: no data");
  CHECK(read->traceback == "stack");
  CHECK(folder.files() == 1);
}

TEST_CASE("a file that cannot be written is an error that names it") {
  CHECK_THROWS_WITH(write_file_atomically("/nonexistent/report.json", "x"),
                    "/nonexistent/report.json: cannot be written: No such file or directory");
}

TEST_CASE("a symbolic link stays one, and a device is written to directly") {
  Folder folder;
  std::ofstream(folder / "real").close();
  fs::create_symlink(folder / "real", folder / "link");
  write_file_atomically(folder / "link", "text");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(contents(folder / "real") == "text");
  write_file_atomically("/dev/null", "text");
  CHECK(fs::is_character_file("/dev/null"));
}
