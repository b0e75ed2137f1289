#include "tensorplay/distributed/file_store.hpp"

#include "runtime/base/fd.hpp"
#include "runtime/base/log.hpp"
#include "runtime/store/file_log.hpp"
#include "tests/store/store_contract.hpp"
#include "tests/support/temporary_directory.hpp"

#include <fcntl.h>
#include <fstream>
#include <functional>
#include <unistd.h>

#include <sys/file.h>
#include <sys/wait.h>

using namespace tensorplay::testing;
using tensorplay::distributed::DistStoreError;
using tensorplay::distributed::FileStore;
using tensorplay::distributed::FileStoreOptions;
using tensorplay::distributed::NotImplementedError;
using tensorplay::store::encode_record;
namespace base = tensorplay::base;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void append_to_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
}

FileStoreOptions options_for(const std::string& path, int world_size, std::string attempt = "") {
  return {.path = path, .world_size = world_size, .timeout = 5s, .attempt = std::move(attempt)};
}

/// Runs `body` in a process that then dies without closing anything.
void in_process_that_is_killed(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
}

/// Collects warnings while it lives.
class Warnings {
 public:
  Warnings() {
    base::log::configure(
        {.level = base::log::Level::kWarning,
         .program = "test",
         .sink = [this](base::log::Level, std::string_view line) { text += std::string(line) + '\n'; }});
  }
  ~Warnings() { base::log::configure({}); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  std::string text;
};

}  // namespace

TEST_CASE("a file store keeps the promises of every store") {
  const TemporaryDirectory directory;
  FileStore store(options_for(directory.file("store"), -1));
  const auto other = store.clone();
  SECTION("keys and values") {
    check_keys_and_values(store, *other);
  }
  SECTION("timeouts") {
    check_timeouts(store);
  }
  SECTION("waiters") {
    check_waiters_are_released(store, *other);
  }
  SECTION("barrier") {
    check_barrier({store.clone(), store.clone(), store.clone()});
  }
  SECTION("no lost additions") {
    check_concurrent_adds({store.clone(), store.clone(), store.clone()}, 100);
  }
  SECTION("no queues") {
    REQUIRE_THROWS_AS(store.queue_push("q", "v"), NotImplementedError);
  }
}

TEST_CASE("the last of the world to close removes the file, and none before it") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  auto first = std::make_unique<FileStore>(options_for(path, 2));
  first->set("k", "v");
  first.reset();
  REQUIRE(std::filesystem::exists(path));
  auto second = std::make_unique<FileStore>(options_for(path, 2));
  REQUIRE(second->get("k") == "v");
  second.reset();
  REQUIRE(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("a file without a world size is kept, with its keys, whoever crashed on it") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  in_process_that_is_killed([&] { (new FileStore(options_for(path, -1)))->set("k", "v"); });
  REQUIRE(FileStore(options_for(path, -1)).get("k") == "v");
  REQUIRE(std::filesystem::exists(path));
}

TEST_CASE("a file whose users were killed does not mislead the next attempt") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  in_process_that_is_killed([&] { (new FileStore(options_for(path, 2)))->set("address of rank 0", "dead:1"); });
  Warnings warnings;
  FileStore next(options_for(path, 2));
  REQUIRE_FALSE(next.check({"address of rank 0"}));
  REQUIRE_THAT(warnings.text, Catch::Matchers::Contains(path + ": was left behind by an earlier attempt"));
}

TEST_CASE("a file whose user lives is not emptied by those who come later") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  in_process_that_is_killed([&] { (new FileStore(options_for(path, 3)))->set("from the killed", "1"); });
  FileStore first(options_for(path, 3));
  first.set("k", "v");
  FileStore second(options_for(path, 3));
  REQUIRE(second.get("k") == "v");
}

TEST_CASE("a user whose last wait failed leaves the file unfinished for the next attempt to empty") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  {
    FileStore lonely(options_for(path, 2));
    lonely.set("address of rank 0", "old:1");
    REQUIRE_THROWS(lonely.wait({"address of rank 1"}, 1ms));
  }
  FileStore next(options_for(path, 2));
  REQUIRE_FALSE(next.check({"address of rank 0"}));
}

TEST_CASE("a user that goes while an exception unwinds leaves the file unfinished") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  try {
    FileStore failing(options_for(path, 2));
    failing.set("k", "old");
    throw std::runtime_error("training diverged");
  } catch (const std::runtime_error&) {
  }
  REQUIRE_FALSE(FileStore(options_for(path, 2)).check({"k"}));
}

TEST_CASE("a file that another attempt closed is emptied, one that another attempt uses is refused") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  auto old = std::make_unique<FileStore>(options_for(path, 3, "job7#0"));
  old->set("k", "old");
  REQUIRE(FileStore(options_for(path, 3, "job7#0")).get("k") == "old");
  auto options = options_for(path, 3, "job7#1");
  options.timeout = 20ms;
  REQUIRE_THROWS_WITH(FileStore(options), Catch::Matchers::Contains("is still in use by another run (job7#0, not "
                                                                    "job7#1); give each run a file of its own"));
  old.reset();
  REQUIRE_FALSE(FileStore(options).check({"k"}));
}

TEST_CASE("a file that users of another implementation may still hold is kept, with a warning") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  append_to_file(path, encode_record("refcount/", "1") + encode_record("/k", "v"));
  Warnings warnings;
  FileStore store(options_for(path, 2));
  REQUIRE(store.get("k") == "v");
  REQUIRE_THAT(warnings.text, Catch::Matchers::Contains("users that may be alive or gone"));
}

TEST_CASE("a torn last record is invisible to readers and cut off by the next writer") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  FileStore reader(options_for(path, -1));
  reader.set("whole", "1");
  const std::string torn = encode_record("/torn", "a value that never came");
  for (std::size_t cut = 1; cut < torn.size(); ++cut) {
    CAPTURE(cut);
    append_to_file(path, torn.substr(0, cut));
    REQUIRE_FALSE(reader.check({"torn"}));
    REQUIRE(reader.get("whole") == "1");
    FileStore writer(options_for(path, -1));
    writer.set("after", std::to_string(cut));
    REQUIRE(reader.get("after") == std::to_string(cut));
  }
  REQUIRE(read_file(path).find("never") == std::string::npos);
}

TEST_CASE("a file that is no store is named and left as it was") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("notes.txt");
  append_to_file(path, "notes of a user\n");
  REQUIRE_THROWS_WITH(FileStore(options_for(path, 2)), Catch::Matchers::Contains(path + ": is not a store"));
  REQUIRE(read_file(path) == "notes of a user\n");
}

TEST_CASE("a file removed or emptied in use is an error at once, not a wait") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  FileStore store(options_for(path, 2));
  store.set("k", "v");
  SECTION("removed") {
    std::filesystem::remove(path);
    REQUIRE_THROWS_WITH(store.wait({"absent"}, 1h), Catch::Matchers::Contains("was removed while in use"));
    REQUIRE_THROWS_AS(store.set("k", "v"), DistStoreError);
  }
  SECTION("emptied") {
    std::filesystem::resize_file(path, 0);
    REQUIRE_THROWS_WITH(store.get("k"), Catch::Matchers::Contains("was emptied while in use"));
  }
}

TEST_CASE("a path that cannot be had says why") {
  REQUIRE_THROWS_WITH(FileStore(options_for("/", 2)), Catch::Matchers::Contains("file store /: cannot open"));
  REQUIRE_THROWS_AS(FileStore(""), std::invalid_argument);
}

TEST_CASE("a lock that somebody holds for ever ends in an error, not a hang") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  FileStore store(options_for(path, 2));
  store.set_timeout(10ms);
  base::UniqueFd other(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(other.get(), LOCK_EX) == 0);
  REQUIRE_THROWS_WITH(store.set("k", "v"), Catch::Matchers::Contains("another process has held its lock for"));
}

TEST_CASE("processes that open, use and close the same path at once never lose it under each other's feet") {
  const TemporaryDirectory directory;
  const std::string path = directory.file("store");
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    const pid_t pid = fork();
    if (pid == 0) {
      int failures = 0;
      for (int i = 0; i < 25; ++i) {
        try {
          FileStore store(options_for(path, 1));
          store.add("n", 1);
          failures += store.check({"n"}) ? 0 : 1;
        } catch (const std::exception&) {
          ++failures;
        }
      }
      _exit(failures);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    REQUIRE(status == 0);
  }
}
