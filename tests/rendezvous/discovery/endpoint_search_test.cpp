// Real sockets on this host: agents that look for a store, and whatever else may hold its port.
#include "rendezvous/discovery/discovery.hpp"
#include "rendezvous/shared_secret.hpp"
#include "runtime/base/host.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/socket.hpp"
#include "runtime/store/tcp_store_server.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tests/rendezvous/discovery/meeting_places.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scripted_server.hpp"

#include <future>
#include <thread>

using namespace std::chrono_literals;
using namespace tensorplay;
using namespace tensorplay::rendezvous;
using distributed::Deadline;
using distributed::DistStoreError;
using distributed::TimeoutError;
using testing::find;
using testing::ScriptedServer;

namespace {

const std::string kSecret = "a secret of thirty-two bytes....";

DiscoveryOptions options_for(std::uint16_t port, const std::string& host = "127.0.0.1") {
  DiscoveryOptions options;
  options.endpoints = {{host, port}};
  options.run_id = "job7";
  options.user = "ada";
  return options;
}

DiscoveryOptions static_options(std::uint16_t port, bool is_host) {
  auto options = options_for(port);
  options.is_host = is_host;
  return options;
}

MeetingPlace find(const std::string& backend, DiscoveryOptions options, Deadline deadline = Deadline::after(30s)) {
  return testing::find(*make_discovery(backend, std::move(options)), {}, deadline);
}

std::string failure(const std::string& backend, DiscoveryOptions options) {
  try {
    find(backend, std::move(options));
  } catch (const DistStoreError& error) {
    return error.what();
  }
  return "(none)";
}

/// A port that was free a moment ago.
std::uint16_t free_port() {
  const auto fd = base::listen_on("127.0.0.1", 0);
  return base::SocketAddress::of_local_end(fd.get()).port();
}

struct Host {
  explicit Host(MeetingPlace place, const std::string& run_id = "job7", const std::string& secret = "")
      : server(options_of(std::move(place), run_id, secret)) {}

  static store::TCPStoreServerOptions options_of(MeetingPlace place, const std::string& run_id,
                                                 const std::string& secret) {
    REQUIRE(place.is_host);
    store::TCPStoreServerOptions options;
    options.listen_fd = std::move(place.listen_fd);
    options.has_agent_table = true;
    options.run_id = run_id;
    options.user = "ada";
    options.epoch = place.epoch;
    options.authenticator = make_authenticator(secret);
    return options;
  }

  store::TCPStoreServer server;
};

MeetingPlace place_on(const std::string& host, std::uint64_t epoch = 1) {
  MeetingPlace place;
  place.is_host = true;
  place.listen_fd = base::listen_on(host, 0);
  place.epoch = epoch;
  return place;
}

std::string on(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

}  // namespace

TEST_CASE("static: rank 0 hosts, and the others find it whoever comes first") {
  const auto port = free_port();
  auto early = std::async(std::launch::async, [&] { return find("static", static_options(port, false)); });
  auto place = find("static", static_options(port, true));
  REQUIRE(place.is_host);
  REQUIRE(place.endpoint.port == port);
  REQUIRE(place.epoch == 1);
  REQUIRE_FALSE(place.is_successor);
  const Host host(std::move(place));
  const auto found = early.get();
  REQUIRE_FALSE(found.is_host);
  REQUIRE(found.endpoint == Endpoint{"127.0.0.1", port});
  REQUIRE(found.epoch == 1);
  REQUIRE(failure("static", static_options(port, true)) ==
          "another agent of this run hosts " + on(port) +
              " already: two agents have node rank 0; give each node its own --node-rank");
}

TEST_CASE("a store of another run or user, or of one node's job, is named at once") {
  const Host host(place_on("127.0.0.1"), "job8");
  const auto port = host.server.port();
  for (const bool is_host : {true, false}) {
    CHECK(failure("static", static_options(port, is_host)) ==
          on(port) +
              " is held by the store of run 'job8' of user ada, this is run 'job7'; choose another port or --rdzv-id");
  }
  auto options = options_for(port);
  options.run_id = "job8";
  options.user = "bob";
  CHECK(failure("c10d", options) ==
        on(port) + " is held by the store of user ada, this is user bob; choose another port");
  store::TCPStoreServerOptions plain;
  plain.run_id = "job7";
  plain.user = "ada";
  const store::TCPStoreServer single(std::move(plain));
  CHECK(failure("c10d", options_for(single.port())) ==
        on(single.port()) +
            " is held by a store that takes no agents: a job on one node, or tpstore; choose another port");
}

TEST_CASE("a port held by a stranger is named with what it said") {
  ScriptedServer ssh({[](int fd) {
    ScriptedServer::write(fd, "SSH-2.0\r\n");
    ScriptedServer::until_closed(fd);
  }});
  const auto expected =
      on(ssh.port()) + " is held by something that is not a store (it sent \"SSH-2.0\"); choose another port";
  CHECK(failure("static", static_options(ssh.port(), false)) == expected);
  CHECK(failure("static", static_options(ssh.port(), true)) == expected);
  CHECK(failure("c10d", options_for(ssh.port())) == expected);
}

TEST_CASE("whoever binds the port hosts, a second agent of the host joins it") {
  const auto port = free_port();
  auto first = find("c10d", options_for(port));
  REQUIRE(first.is_host);
  // Its server is not running yet; the port is taken all the same.
  auto second = std::async(std::launch::async, [&] { return find("c10d", options_for(port)); });
  const Host host(std::move(first));
  REQUIRE_FALSE(second.get().is_host);
}

TEST_CASE("many agents that start at once on one host agree on one store") {
  const auto port = free_port();
  std::vector<std::future<bool>> agents;
  std::promise<void> all_know;
  auto known = all_know.get_future().share();
  std::atomic<int> joined = 0;
  for (int i = 0; i < 16; ++i) {
    agents.push_back(std::async(std::launch::async, [&] {
      auto place = find("c10d", options_for(port, "localhost"));
      if (!place.is_host) {
        if (++joined == 15) all_know.set_value();
        return false;
      }
      const Host host(std::move(place));
      REQUIRE(known.wait_for(30s) == std::future_status::ready);
      return true;
    }));
  }
  int hosts = 0;
  for (auto& agent : agents) hosts += agent.get() ? 1 : 0;
  REQUIRE(hosts == 1);
}

TEST_CASE("an own address of any interface makes the host, and is bound on all of them") {
  for (const auto& address : base::interface_addresses()) {
    if (address.is_loopback) continue;
    INFO(address.address);
    const auto place = find("c10d", options_for(free_port(), address.address));
    REQUIRE(place.is_host);
    REQUIRE(base::SocketAddress::of_local_end(place.listen_fd.get()).host() == "::");
  }
  const auto local = find("c10d", options_for(free_port(), "localhost"));
  REQUIRE(base::SocketAddress::of_local_end(local.listen_fd.get()).is_loopback());
}

TEST_CASE("the deadline's error names the last reason of each endpoint") {
  const auto text = [](const std::string& backend, DiscoveryOptions options) {
    try {
      find(backend, std::move(options), Deadline::after(300ms));
    } catch (const TimeoutError& error) {
      return std::string(error.what());
    }
    return std::string("(none)");
  };
  const auto port = free_port();
  CHECK(text("static", static_options(port, false)) ==
        "waited 0.3 s for a store: connecting to " + on(port) + ": Connection refused");
  auto options = options_for(29400, "no-such-host.invalid");
  options.endpoints.push_back({"neither.invalid", 1});
  const auto unresolved = text("c10d", options);
  INFO(unresolved);
  CHECK(unresolved.find("no-such-host.invalid") != std::string::npos);
  CHECK(unresolved.find("neither.invalid") != std::string::npos);
  CHECK(unresolved.find("is_host=True") != std::string::npos);
}

TEST_CASE("the scheduler is asked for a name that the resolver does not know") {
  const Host host(place_on("127.0.0.1"));
  auto options = options_for(host.server.port(), "n1.cluster.invalid");
  std::string asked;
  options.ask_scheduler = [&](const std::string& name) {
    asked = name;
    return std::vector<std::string>{"127.0.0.1"};
  };
  options.is_host = false;
  REQUIRE_FALSE(find("static", options).is_host);
  REQUIRE(asked == "n1.cluster.invalid");
}

TEST_CASE("a host that is stopped is waited for") {
  const auto held = base::listen_on("127.0.0.1", 0);  // Accepts in the kernel, answers never.
  const auto port = base::SocketAddress::of_local_end(held.get()).port();
  REQUIRE_THROWS_AS(find("static", static_options(port, false), Deadline::after(200ms)), TimeoutError);
}

TEST_CASE("cancel ends a search from another thread, and every later one") {
  const auto discovery = make_discovery("c10d", options_for(29400, "no-such-host.invalid"));
  std::promise<void> started;
  auto search = std::async(std::launch::async, [&] {
    started.set_value();
    find(*discovery, {}, Deadline::never());
  });
  started.get_future().wait();
  discovery->cancel();
  REQUIRE_THROWS_AS(search.get(), Cancelled);
  REQUIRE_THROWS_AS(find(*discovery), Cancelled);
}

TEST_CASE("endpoints at which several nodes cannot meet are refused") {
  CHECK(failure("c10d", options_for(0, "n1")) ==
        "n1:0: port 0 means any free port, which the other nodes cannot know; give a number");
  CHECK(failure("static", options_for(1, "0.0.0.0")) ==
        "0.0.0.0:1: is no address of a host; give one, or a name, that all nodes can reach");
  auto alone = options_for(0, "localhost");
  alone.is_alone = true;
  const auto place = find("c10d", alone);
  REQUIRE(place.is_host);
  REQUIRE(place.endpoint.port != 0);
}

TEST_CASE("after a loss the next endpoint's owner takes over with a higher epoch, and others find it there") {
  auto options = options_for(free_port());
  options.endpoints.push_back({"127.0.0.1", free_port()});
  const LastSeen last{3, options.endpoints[0]};
  const auto discovery = make_discovery("c10d", options);
  auto place = find(*discovery, last);
  REQUIRE(place.is_host);
  REQUIRE(place.is_successor);
  REQUIRE(place.epoch == 4);
  REQUIRE(place.endpoint == options.endpoints[1]);
  const Host host(std::move(place));
  const auto found = find(*discovery, last);
  REQUIRE_FALSE(found.is_host);
  REQUIRE(found.epoch == 4);
  // Who comes anew finds it too, and not an empty place to host at.
  const auto fresh = find(*discovery);
  REQUIRE_FALSE(fresh.is_host);
  REQUIRE(fresh.endpoint == options.endpoints[1]);
}

TEST_CASE("a host of an older epoch is not joined") {
  const Host thawed(place_on("127.0.0.1", 1));
  const auto discovery = make_discovery("static", static_options(thawed.server.port(), false));
  try {
    find(*discovery, {2, std::nullopt}, Deadline::after(200ms));
    FAIL("joined");
  } catch (const TimeoutError& error) {
    REQUIRE(std::string(error.what()).find("an old host that has been succeeded (epoch 1, the last one seen was 2)") !=
            std::string::npos);
  }
}

TEST_CASE("agent and store prove to each other that they know the secret") {
  const Host host(place_on("127.0.0.1"), "job7", kSecret);
  auto options = options_for(host.server.port());
  options.secret = kSecret;
  REQUIRE_FALSE(find("c10d", options).is_host);
}

TEST_CASE("a secret that differs or is missing is one line on both sides") {
  struct Row {
    std::string servers, agents, agent_says, server_says;
  };
  const std::string other = "another secret of enough bytes..";
  for (const Row& row :
       {Row{kSecret, other, " has another secret than this node;", "the agent's secret is not this job's;"},
        Row{kSecret, "", " wants a proof of the job's secret;", "the agent has no secret and this job has one;"},
        Row{"", kSecret, " has no secret and this node has one;", "this job has no secret and the agent has one;"}}) {
    std::mutex mutex;
    std::string logged;
    base::log::Options log;
    log.sink = [&](base::log::Level, std::string_view line) {
      const std::lock_guard lock(mutex);
      logged += line;
    };
    base::log::configure(std::move(log));
    {
      const Host host(place_on("127.0.0.1"), "job7", row.servers);
      auto options = options_for(host.server.port());
      options.secret = row.agents;
      CHECK(failure("c10d", options).find(row.agent_says) != std::string::npos);
    }
    base::log::configure({});
    INFO(logged);
    CHECK(logged.find(row.server_says) != std::string::npos);
  }
}
