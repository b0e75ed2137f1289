// The election of a host by a real etcd (Debian's etcd-server); without one there is nothing to test.
#include "rendezvous/discovery/etcd_search.hpp"

#include "rendezvous/discovery/host_file.hpp"
#include "runtime/store/tcp_store_server.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tests/rendezvous/discovery/etcd_server.hpp"
#include "tests/rendezvous/discovery/meeting_places.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scripted_server.hpp"

#include <atomic>
#include <future>
#include <set>
#include <thread>

using namespace std::chrono_literals;
using namespace tensorplay;
using namespace tensorplay::rendezvous;
using distributed::Deadline;
using distributed::DistStoreError;
using testing::EtcdServer;
using testing::find;
using testing::ScriptedServer;
using testing::serve;

namespace {

constexpr auto kLease = 2s;  // The shortest that etcd grants.

DiscoveryOptions options_for(std::vector<Endpoint> endpoints) {
  DiscoveryOptions options;
  options.endpoints = std::move(endpoints);
  options.run_id = "job7";
  options.user = "ada";
  return options;
}

std::string failure(DiscoveryOptions options) {
  EtcdSearch agent(std::move(options));
  try {
    find(agent);
  } catch (const DistStoreError& error) {
    return error.what();
  }
  return "(none)";
}

}  // namespace

TEST_CASE("base64 is what the gateway takes") {
  for (const auto& [bytes, text] : std::vector<std::pair<std::string, std::string>>{
           {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"\xff\xfe\xfd", "//79"}}) {
    CHECK(base64_of(bytes) == text);
    CHECK(from_base64(text) == bytes);
  }
  CHECK_THROWS_AS(from_base64("Zg!="), std::invalid_argument);
}

TEST_CASE("etcd elects one host of many agents that start at once") {
  if (!EtcdServer::is_installed()) return;
  const EtcdServer etcd;
  std::vector<std::future<std::uint64_t>> agents;
  std::promise<void> all_know;
  auto known = all_know.get_future().share();
  std::atomic<int> hosts = 0;
  std::atomic<int> joined = 0;
  for (int i = 0; i < 8; ++i) {
    agents.push_back(std::async(std::launch::async, [&] {
      EtcdSearch agent(options_for({etcd.endpoint()}));
      auto place = find(agent);
      const auto epoch = place.epoch;
      if (!place.is_host) {
        if (++joined == 7) all_know.set_value();
        return epoch;
      }
      ++hosts;
      const auto server = serve(std::move(place));
      REQUIRE(known.wait_for(30s) == std::future_status::ready);
      return epoch;
    }));
  }
  std::set<std::uint64_t> epochs;
  for (auto& agent : agents) epochs.insert(agent.get());
  REQUIRE(hosts == 1);
  REQUIRE(epochs.size() == 1);
  REQUIRE_FALSE(etcd.client_of_own().get("/tprun/job7/host"));  // It went with its host.
}

TEST_CASE("when a host dies its lease ends, and another agent hosts with a higher epoch") {
  if (!EtcdServer::is_installed()) return;
  const EtcdServer etcd;
  int answer[2];
  REQUIRE(::pipe(answer) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    EtcdSearch agent(options_for({etcd.endpoint()}), kLease);
    const auto place = agent.find({}, Deadline::after(30s), {});
    [[maybe_unused]] const auto written = ::write(answer[1], &place.epoch, sizeof place.epoch);
    ::_exit(0);  // As SIGKILL would: nothing is revoked.
  }
  std::uint64_t first = 0;
  REQUIRE(::read(answer[0], &first, sizeof first) == sizeof first);
  ::close(answer[0]);
  ::close(answer[1]);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  REQUIRE(etcd.client_of_own().get("/tprun/job7/host"));
  EtcdSearch agent(options_for({etcd.endpoint()}), kLease);
  const auto place = find(agent, {first, std::nullopt});
  REQUIRE(place.is_host);
  REQUIRE(place.is_successor);
  REQUIRE(place.epoch > first);
}

TEST_CASE("a host whose lease etcd has let go is told, an etcd that is away for a while is no reason") {
  if (!EtcdServer::is_installed()) return;
  EtcdServer etcd;
  std::promise<std::string> lost;
  auto options = options_for({etcd.endpoint()});
  options.on_host_lost = [&](const std::string& why) { lost.set_value(why); };
  EtcdSearch agent(options, kLease);
  const auto place = find(agent);
  REQUIRE(place.is_host);
  auto told = lost.get_future();
  etcd.kill();
  etcd.start();
  REQUIRE(told.wait_for(0s) == std::future_status::timeout);
  auto client = etcd.client_of_own();
  const auto value = client.get("/tprun/job7/host");
  REQUIRE(value);
  REQUIRE(value->created == place.epoch);
  // Somebody revokes the lease, as its end would.
  client.revoke(value->lease);
  REQUIRE(told.wait_for(30s) == std::future_status::ready);
  REQUIRE(told.get() == "etcd has given up this host's lease");
}

TEST_CASE("an etcd that was emptied does not make epochs small again") {
  if (!EtcdServer::is_installed()) return;
  const EtcdServer etcd;
  EtcdSearch agent(options_for({etcd.endpoint()}));
  auto place = find(agent, {1'000'000, std::nullopt});
  REQUIRE(place.epoch == 1'000'001);
  const auto server = serve(std::move(place));
  EtcdSearch other(options_for({etcd.endpoint()}));
  REQUIRE(find(other, {1'000'000, std::nullopt}).epoch == 1'000'001);
}

TEST_CASE("a member of etcd that is away is followed by the next one, and its way back is waited for") {
  if (!EtcdServer::is_installed()) return;
  EtcdServer etcd;
  const auto gone = base::SocketAddress::of_local_end(base::listen_on("127.0.0.1", 0).get()).port();
  EtcdSearch agent(options_for({{"no-such-host.invalid", 1}, {"127.0.0.1", gone}, etcd.endpoint()}));
  REQUIRE(find(agent).is_host);
  etcd.kill();
  auto options = options_for({etcd.endpoint()});
  options.run_id = "job8";
  EtcdSearch early(options);
  auto search = std::async(std::launch::async, [&] { return find(early).is_host; });
  etcd.start();
  REQUIRE(search.get());
}

TEST_CASE("waiting for etcd ends by cancel and at the deadline, with the reason") {
  ScriptedServer silent({[](int fd) { ScriptedServer::until_closed(fd); }});
  EtcdSearch agent(options_for({{"127.0.0.1", silent.port()}}));
  auto search = std::async(std::launch::async, [&] { find(agent, {}, Deadline::never()); });
  while (silent.connections() == 0) std::this_thread::yield();
  agent.cancel();
  REQUIRE_THROWS_AS(search.get(), Cancelled);
  const auto gone = base::SocketAddress::of_local_end(base::listen_on("127.0.0.1", 0).get()).port();
  EtcdSearch late(options_for({{"127.0.0.1", gone}}));
  try {
    find(late, {}, Deadline::after(100ms));
    FAIL("found");
  } catch (const distributed::TimeoutError& error) {
    REQUIRE(std::string(error.what()) ==
            "waited 0.1 s for a store: etcd at 127.0.0.1:" + std::to_string(gone) + ": Connection refused");
  }
}

TEST_CASE("what is not etcd, and a run of another user, are named at once") {
  ScriptedServer web({[](int fd) {
    ScriptedServer::read(fd, 20);
    ScriptedServer::write(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  }});
  CHECK(failure(options_for({{"127.0.0.1", web.port()}})) ==
        "127.0.0.1:" + std::to_string(web.port()) + " is not etcd 3.4 or later: it does not know /v3/kv/range");
  if (!EtcdServer::is_installed()) return;
  const EtcdServer etcd;
  EtcdSearch agent(options_for({etcd.endpoint()}));
  REQUIRE(find(agent).is_host);
  auto options = options_for({etcd.endpoint()});
  options.user = "bob";
  CHECK(failure(options) == "run 'job7' in etcd is user ada's; choose another --rdzv-id or etcd_prefix");
  options.etcd_prefix = "/bobs";
  EtcdSearch other(options);
  REQUIRE(find(other).is_host);
}
