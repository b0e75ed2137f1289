// A shared folder, real files, real sockets; the agents are threads or objects of this process.
#include "rendezvous/discovery/file_search.hpp"

#include "runtime/base/socket.hpp"
#include "runtime/store/tcp_store_server.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tests/rendezvous/discovery/meeting_places.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

#include <filesystem>
#include <fstream>
#include <future>
#include <unistd.h>

#include <sys/wait.h>

using namespace std::chrono_literals;
using namespace tensorplay;
using namespace tensorplay::rendezvous;
using distributed::Deadline;
using testing::find;
using testing::serve;

namespace {

struct Folder {
  testing::TemporaryDirectory directory;

  DiscoveryOptions options(const std::string& run_id = "job7") const {
    DiscoveryOptions options;
    options.folder = directory.file("meet");
    options.run_id = run_id;
    options.user = "ada";
    return options;
  }
  std::unique_ptr<Discovery> agent() const { return make_discovery("file", options()); }
  std::string path(const std::string& run_id = "job7") const { return options().folder + "/tprun-" + run_id; }
};

HostRecord a_record() {
  return {"n1", {"10.0.0.1", "fd00::1"}, 4711, "boot/net", "boot/pid", 12, "ada", 7, 345};
}

RecordedHost silent_for(std::chrono::milliseconds failing) {
  RecordedHost host;
  host.answer = Answer::kUnreachable;
  host.failing = failing;
  host.total = 600s;
  return host;
}

}  // namespace

TEST_CASE("the first to leave word hosts, the others find it, and its word goes with it") {
  const Folder folder;
  auto first = folder.agent();
  auto place = find(*first);
  REQUIRE(place.is_host);
  REQUIRE(place.epoch == 1);
  REQUIRE_FALSE(place.is_successor);
  const auto server = serve(std::move(place));
  const auto found = find(*folder.agent());
  REQUIRE_FALSE(found.is_host);
  REQUIRE(found.endpoint.port == server->port());
  REQUIRE(found.epoch == 1);
  REQUIRE(std::filesystem::exists(folder.path() + "/host-1"));
  first.reset();
  REQUIRE_FALSE(std::filesystem::exists(folder.path()));
}

TEST_CASE("of many agents that start at once in one folder one hosts") {
  const Folder folder;
  std::vector<std::future<bool>> agents;
  std::promise<void> all_know;
  auto known = all_know.get_future().share();
  std::atomic<int> joined = 0;
  for (int i = 0; i < 12; ++i) {
    agents.push_back(std::async(std::launch::async, [&] {
      const auto agent = folder.agent();
      auto place = find(*agent);
      if (!place.is_host) {
        if (++joined == 11) all_know.set_value();
        return false;
      }
      const auto server = serve(std::move(place));
      REQUIRE(known.wait_for(30s) == std::future_status::ready);
      return true;
    }));
  }
  int hosts = 0;
  for (auto& agent : agents) hosts += agent.get() ? 1 : 0;
  REQUIRE(hosts == 1);
}

TEST_CASE("the word of a process that was killed is taken over at once") {
  const Folder folder;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto agent = make_discovery("file", folder.options());
    const auto place = agent->find({}, Deadline::after(30s), {});
    ::_exit(place.is_host ? 0 : 1);  // As SIGKILL would: nothing is cleaned up.
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  REQUIRE(std::filesystem::exists(folder.path() + "/host-1"));
  const auto agent = folder.agent();
  const auto place = find(*agent, {}, Deadline::after(600s));
  REQUIRE(place.is_host);
  REQUIRE(place.epoch == 2);
  REQUIRE(place.is_successor);
  REQUIRE_FALSE(std::filesystem::exists(folder.path() + "/host-1"));
}

TEST_CASE("a host that was seen and lost is succeeded by one agent, with a higher epoch") {
  const Folder folder;
  const auto first = folder.agent();
  auto server = serve(find(*first));
  server.reset();  // Its agent lives, and its file is locked: only those who lost it may go on.
  const LastSeen last{1, std::nullopt};
  const auto second = folder.agent();
  const auto successor = serve(find(*second, last));
  const auto found = find(*folder.agent(), last);
  REQUIRE_FALSE(found.is_host);
  REQUIRE(found.epoch == 2);
  REQUIRE(found.endpoint.port == successor->port());
}

TEST_CASE("runs and users do not meet in one folder") {
  const Folder folder;
  auto first = make_discovery("file", folder.options("a/b"));
  auto second = make_discovery("file", folder.options("a_b"));
  REQUIRE(find(*first).is_host);
  REQUIRE(find(*second).is_host);
  REQUIRE(std::filesystem::exists(folder.path("a%2Fb")));
  REQUIRE(file_name_of(std::string(300, 'x')).size() < 130);
  REQUIRE(file_name_of(std::string(300, 'x') + "1") != file_name_of(std::string(300, 'x') + "2"));
  if (::geteuid() == 0) {
    std::filesystem::create_directory(folder.path("theirs"));
    REQUIRE(::chown(folder.path("theirs").c_str(), 12345, 12345) == 0);
    REQUIRE_THROWS_WITH(find(*make_discovery("file", folder.options("theirs"))),
                        folder.path("theirs") + ": is another user's; choose another folder or --rdzv-id");
  }
}

TEST_CASE("a folder that cannot be used is an error at once") {
  const Folder folder;
  auto options = folder.options();
  options.folder = "/no/such/folder";
  REQUIRE_THROWS_WITH(find(*make_discovery("file", options)),
                      "/no/such/folder: cannot be made: No such file or directory");
  const auto agent = folder.agent();
  std::filesystem::create_directories(folder.path());
  std::ofstream(folder.path() + "/host-3") << "torn";
  REQUIRE_THROWS_WITH(find(*agent), folder.path() + "/host-3: is no record of a host; remove it");
}

TEST_CASE("waiting in a folder ends by cancel and at the deadline, with the reason") {
  const Folder folder;
  auto options = folder.options();
  options.is_host = false;
  const auto agent = make_discovery("file", options);
  REQUIRE_THROWS_AS(find(*agent, {}, Deadline::after(50ms)), distributed::TimeoutError);
  auto search = std::async(std::launch::async, [&] { find(*agent, {}, Deadline::never()); });
  agent->cancel();
  REQUIRE_THROWS_AS(search.get(), Cancelled);
}

TEST_CASE("a record reads back as it was written, and nothing else does") {
  REQUIRE(parse_host_record(to_text(a_record())) == a_record());
  for (const char* text : {"", "{}", "[1]", "{\"host\": 1}", "\xff\xfe"}) REQUIRE_FALSE(parse_host_record(text));
}

TEST_CASE("a process of another machine, or one that lives, is never certainly gone") {
  auto record = own_record({}, 1, "ada");
  REQUIRE_FALSE(is_certainly_gone(record));
  ++record.started;  // Its pid is another process's now.
  REQUIRE(is_certainly_gone(record));
  record.pid_space = "another boot";
  REQUIRE_FALSE(is_certainly_gone(record));
}

TEST_CASE("a silent host is succeeded only when it is dead for certain, was lost, or half the time is over") {
  auto host = silent_for(0s);
  CHECK_FALSE(may_be_succeeded(host));
  host.is_gone = true;
  CHECK(may_be_succeeded(host));

  host = silent_for(0s);
  host.is_refused = true;
  CHECK_FALSE(may_be_succeeded(host));
  host.is_locked = false;
  CHECK(may_be_succeeded(host));
  host.is_locked = std::nullopt;
  host.failing = 5s;
  CHECK(may_be_succeeded(host));
  host.is_locked = true;  // Its process lives, and may be about to listen again.
  CHECK_FALSE(may_be_succeeded(host));

  host = silent_for(1s);
  host.is_lost = true;
  CHECK_FALSE(may_be_succeeded(host));
  host.failing = 2s;
  CHECK(may_be_succeeded(host));

  CHECK_FALSE(may_be_succeeded(silent_for(299s)));
  CHECK(may_be_succeeded(silent_for(300s)));
  host = silent_for(600s);
  host.answer = Answer::kStore;
  CHECK_FALSE(may_be_succeeded(host));
}
