#include "rendezvous/store_link.hpp"

#include "runtime/store/tcp_store_server.hpp"
#include "tests/rendezvous/relay.hpp"
#include "tests/store/raw_client.hpp"
#include "tests/support/catch.hpp"

#include <optional>

using namespace std::chrono_literals;
using namespace tensorplay::rendezvous;
namespace store = tensorplay::store;
namespace base = tensorplay::base;
using tensorplay::rendezvous::testing::Relay;

namespace {

store::TCPStoreServerOptions agents_store(std::uint64_t epoch = 1) {
  store::TCPStoreServerOptions options;
  options.has_agent_table = true;
  options.run_id = "job7";
  options.user = "ada";
  options.epoch = epoch;
  return options;
}

StoreLinkOptions link_to(std::uint16_t port) {
  StoreLinkOptions options;
  options.addresses = base::SocketAddress::resolve("127.0.0.1", port);
  options.place = "n1:" + std::to_string(port);
  options.run_id = "job7";
  options.user = "ada";
  options.agent = "n2_1";
  options.token = 77;
  options.epoch = 1;
  options.keep_alive = 10s;
  options.reconnect = 10s;
  options.will = "the will of n2";
  return options;
}

/// One agent's link, its loop, and what it was told.
struct Agent {
  asio::io_context loop;
  std::optional<std::string> local_address;
  std::optional<StoreLink::CutOff> cut;
  int answers = 0;
  std::vector<std::string> orders;
  StoreLink link;
  MailReader reader;

  explicit Agent(const StoreLinkOptions& options)
      : link(loop, options,
             {.on_held = [this](const std::string& address) { local_address = address; },
              .on_answer = [this](StoreLink::TimePoint) { ++answers; },
              .on_cut_off = [this](const StoreLink::CutOff& why) { cut = why; }}),
        reader(loop, link, orders_queue(options.agent), [this](const std::string& text) { orders.push_back(text); }) {}

  /// Runs the loop until `condition` holds.
  template <class Condition>
  bool until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      loop.restart();
      loop.run_one_for(2ms);
    }
    return true;
  }
  bool until_held() {
    return until([this] { return local_address.has_value(); });
  }
  bool until_cut() {
    return until([this] { return cut.has_value(); });
  }
};

}  // namespace

TEST_CASE("reports reach the leader's inbox in order, with their sender's address, and orders come back") {
  store::TCPStoreServer server(agents_store());
  Agent agent(link_to(server.port()));
  agent.link.post(kInbox, "joined");
  agent.link.post(kInbox, "stopped");
  REQUIRE(agent.until_held());
  REQUIRE(agent.local_address == "127.0.0.1");
  std::vector<std::string> reports;
  REQUIRE(agent.until([&] {
    while (auto report = server.try_pop(kInbox)) reports.push_back(*report);
    return reports.size() == 2;
  }));
  REQUIRE(reports == std::vector<std::string>{"joined\nfrom 127.0.0.1", "stopped\nfrom 127.0.0.1"});
  server.push(orders_queue("n2_1"), "start");
  server.push(orders_queue("n2_1"), "stop");
  server.push(orders_queue("n3_1"), "not for us");
  REQUIRE(agent.until([&] { return agent.orders.size() == 2; }));
  REQUIRE(agent.orders == std::vector<std::string>{"start", "stop"});
}

TEST_CASE("connections that break again and again lose no report and no order, and repeat none") {
  store::TCPStoreServer server(agents_store());
  Relay network(server.port());
  Agent agent(link_to(network.port()));
  REQUIRE(agent.until_held());
  std::vector<std::string> reports;
  std::vector<std::string> sent;
  for (int i = 0; i < 30; ++i) {
    sent.push_back(std::to_string(i));
    agent.link.post(kInbox, sent.back());
    server.push(orders_queue("n2_1"), sent.back());
    if (i % 3 == 0) network.cut();
    agent.loop.restart();
    agent.loop.run_for(std::chrono::milliseconds(i % 4));
  }
  REQUIRE(agent.until([&] {
    while (auto report = server.try_pop(kInbox)) reports.push_back(report->substr(0, report->find('\n')));
    return reports.size() >= sent.size() && agent.orders.size() >= sent.size();
  }));
  REQUIRE(reports == sent);
  REQUIRE(agent.orders == sent);
  REQUIRE_FALSE(agent.cut);
}

TEST_CASE("without an answer for a whole keep-alive the agent is cut off, and so it is for the others") {
  store::TCPStoreServer server(agents_store());
  Relay network(server.port());
  auto options = link_to(network.port());
  options.keep_alive = 600ms;
  Agent agent(options);
  REQUIRE(agent.until_held());
  network.swallow();
  REQUIRE(agent.until_cut());
  REQUIRE(agent.cut->is_store_lost);
  REQUIRE_THAT(agent.cut->why, Catch::Contains("no answer from the store at n1:") && Catch::Contains("for 0.6 s"));
  std::optional<std::string> will;
  REQUIRE(agent.until([&] { return (will = server.try_pop(kInbox)).has_value(); }));
  REQUIRE(will->starts_with("the will of n2\nlost "));
}

TEST_CASE("pings keep an agent in for longer than its keep-alive") {
  store::TCPStoreServer server(agents_store());
  auto options = link_to(server.port());
  options.keep_alive = 300ms;
  Agent agent(options);
  REQUIRE(agent.until([&] { return agent.answers >= 8; }));
  REQUIRE_FALSE(agent.cut);
  REQUIRE_FALSE(server.try_pop(kInbox));
  REQUIRE(std::chrono::abs(agent.link.clock_offset()) < 5s);
}

TEST_CASE("an agent that was declared lost learns it with its next ping") {
  store::TCPStoreServer server(agents_store());
  auto options = link_to(server.port());
  options.keep_alive = 2s;
  Agent agent(options);
  REQUIRE(agent.until_held());
  store::testing::RawClient guardian(server.port());
  guardian.hello({1, store::Role::kAgent, "job7", "ada", "n2_1", 1});
  std::string bytes;
  store::encode_declare_lost(bytes, "n2_1", 77);
  guardian.send(bytes);
  REQUIRE(agent.until_cut());
  REQUIRE_FALSE(agent.cut->is_store_lost);
  REQUIRE_THAT(agent.cut->why, Catch::Contains("given up"));
}

TEST_CASE("a store of another job, of another user, or of another epoch sends the agent away with a reason") {
  store::TCPStoreServer server(agents_store(4));
  auto options = link_to(server.port());
  const auto reason = [](const StoreLinkOptions& with) {
    Agent agent(with);
    REQUIRE(agent.until_cut());
    REQUIRE_FALSE(agent.local_address);
    REQUIRE_FALSE(agent.cut->is_store_lost);
    return agent.cut->why;
  };
  REQUIRE_THAT(reason(options), Catch::Contains("a later one of this job (epoch 4, not 1)"));
  options.epoch = 5;
  REQUIRE_THAT(reason(options), Catch::Contains("an old host that has been succeeded"));
  options.epoch = 4;
  options.run_id = "job8";
  REQUIRE_THAT(reason(options), Catch::Contains("belongs to another job, 'job7'"));
  options.run_id = "job7";
  options.user = "bob";
  REQUIRE_THAT(reason(options), Catch::Contains("belongs to another user, ada"));
}

TEST_CASE("a host on which nobody listens any more has lost its store, long before the lease ends") {
  std::optional<store::TCPStoreServer> server(std::in_place, agents_store());
  auto options = link_to(server->port());
  options.keep_alive = 60s;
  options.reconnect = 100ms;
  Agent agent(options);
  REQUIRE(agent.until_held());
  server.reset();
  REQUIRE(agent.until_cut());
  REQUIRE(agent.cut->is_store_lost);
  REQUIRE_THAT(agent.cut->why, Catch::Contains("is gone"));
}

TEST_CASE("who leaves has said everything before, and its will comes to nothing") {
  store::TCPStoreServer server(agents_store());
  auto options = link_to(server.port());
  options.reconnect = 20ms;
  Agent agent(options);
  REQUIRE(agent.until_held());
  std::atomic<bool> has_no_wills{false};
  agent.link.post(kInbox, "leaving");
  bool has_left = false;
  agent.link.leave(20s, [&] { has_left = true; });
  REQUIRE(agent.until([&] { return has_left; }));
  REQUIRE(server.try_pop(kInbox) == "leaving\nfrom 127.0.0.1");
  server.on_no_wills([&] { has_no_wills = true; });
  REQUIRE(agent.until([&] { return has_no_wills.load(); }));
  REQUIRE(agent.until([&] { return server.connection_count() == 0; }));
  REQUIRE_FALSE(server.try_pop(kInbox));
}

TEST_CASE("leaving a store that does not answer takes no longer than it may") {
  store::TCPStoreServer server(agents_store());
  Relay network(server.port());
  Agent agent(link_to(network.port()));
  REQUIRE(agent.until_held());
  network.swallow();
  bool has_left = false;
  agent.link.leave(50ms, [&] { has_left = true; });
  REQUIRE(agent.until([&] { return has_left; }));
  REQUIRE_FALSE(agent.cut);
}
