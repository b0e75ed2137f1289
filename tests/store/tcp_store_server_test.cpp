#include "runtime/store/tcp_store_server.hpp"

#include "tests/store/raw_client.hpp"
#include "tests/store/until.hpp"
#include "tests/support/catch.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using namespace tensorplay::store;
using tensorplay::base::Deadline;
using tensorplay::distributed::DistNetworkError;
using tensorplay::distributed::SocketError;
using tensorplay::store::testing::RawClient;
using tensorplay::store::testing::until;

namespace {

TCPStoreServerOptions agent_options() {
  TCPStoreServerOptions options;
  options.has_agent_table = true;
  options.run_id = "job7";
  options.user = "ada";
  return options;
}

std::string wait_for(const std::string& key) {
  std::string bytes;
  encode_wait(bytes, {key});
  return bytes;
}

}  // namespace

TEST_CASE("a key set by one client is read, counted and awaited by others") {
  TCPStoreServer server({});
  RawClient a(server.port());
  RawClient b(server.port());
  b.send(wait_for("/k"));
  a.set("/k", "value");
  REQUIRE(b.receive_u8() == kStopWaiting);
  REQUIRE(b.get("/k") == "value");
  REQUIRE(a.add("/n", 3) == 3);
  REQUIRE(b.add("/n", -5) == -2);
  REQUIRE(b.get("/n") == "-2");
}

TEST_CASE("a value of the greatest size goes in and comes out") {
  TCPStoreServer server({});
  RawClient client(server.port());
  const std::string value(kMaxPayloadBytes, 'v');
  client.set("/big", value);
  REQUIRE(client.get("/big") == value);
}

TEST_CASE("the server binds where it is told") {
  TCPStoreServerOptions v6;
  v6.host = "::1";
  TCPStoreServer six(std::move(v6));
  RawClient(six.port(), "::1").ping();

  TCPStoreServerOptions all;
  all.host = "::";
  TCPStoreServer every(std::move(all));
  RawClient(every.port(), "127.0.0.1").ping();
  RawClient(every.port(), "::1").ping();

  TCPStoreServerOptions inherited;
  inherited.listen_fd = tensorplay::base::listen_on("127.0.0.1", 0);
  const auto port = tensorplay::base::SocketAddress::of_local_end(inherited.listen_fd.get()).port();
  TCPStoreServer adopted(std::move(inherited));
  REQUIRE(adopted.port() == port);
  RawClient(port).ping();

  TCPStoreServerOptions taken;
  taken.port = port;
  REQUIRE_THROWS_AS(TCPStoreServer(std::move(taken)), SocketError);
}

TEST_CASE("a new round starts empty and no connection of the old one lives to see it") {
  TCPStoreServer server(agent_options());
  RawClient old(server.port());
  old.set("/k", "old");
  old.ping();
  RawClient waiting(server.port());
  waiting.send(wait_for("/never"));
  REQUIRE(until([&] { return server.waiter_count() == 1; }));
  RawClient idle(server.port());
  idle.ping();

  server.begin_round();
  REQUIRE(server.key_count() == 0);
  REQUIRE(server.waiter_count() == 0);
  REQUIRE(old.is_closed_by_server());
  REQUIRE(waiting.is_closed_by_server());
  // One that had not used the table yet stays, and is closed when it tries to.
  idle.ping();
  idle.set("/k", "late");
  REQUIRE(idle.is_closed_by_server());

  RawClient fresh(server.port());
  REQUIRE(fresh.get("/k").empty());
}

TEST_CASE("what an old worker had sent before the round ended cannot reach the new one") {
  TCPStoreServer server({});
  for (int i = 0; i < 50; ++i) {
    // Sent and gone, perhaps not even accepted yet: as a killed worker leaves it.
    auto dead = RawClient(server.port());
    dead.set("/k" + std::to_string(i), "stale");
    dead.close();
    server.begin_round();
    RawClient fresh(server.port());
    std::string bytes;
    encode_get_num_keys(bytes);
    fresh.send(bytes);
    REQUIRE(fresh.receive_i64() == 0);
  }
}

TEST_CASE("hosts outside the round are refused the workers' table, and thrown out of it") {
  TCPStoreServer server(agent_options());
  RawClient early(server.port());
  early.add("/n", 1);
  server.allow_hosts({"10.0.0.1"});
  REQUIRE(early.is_closed_by_server());
  RawClient stranger(server.port());
  stranger.ping();
  server.begin_round();
  stranger.set("/k", "v");
  REQUIRE(stranger.is_closed_by_server());
  server.allow_hosts({"10.0.0.1", "127.0.0.1"});
  REQUIRE(RawClient(server.port()).add("/n", 1) == 1);
  server.allow_hosts({});
  REQUIRE(RawClient(server.port()).add("/n", 1) == 2);
  // Where an agent comes from its workers may come from, whatever it knows of its addresses.
  server.allow_hosts({"10.0.0.1"});
  RawClient worker(server.port());
  RawClient agent(server.port());
  agent.hello({1, Role::kAgent, "job7", "ada", "n1", 0});
  REQUIRE(worker.add("/n", 1) == 3);
}

TEST_CASE("the first use of a round is remembered") {
  TCPStoreServer server({});
  RawClient client(server.port());
  client.ping();
  REQUIRE_FALSE(server.first_use());
  const auto before = std::chrono::steady_clock::now();
  client.add("/n", 1);
  REQUIRE(server.first_use());
  REQUIRE(*server.first_use() >= before - 1s);
  server.begin_round();
  REQUIRE_FALSE(server.first_use());
}

TEST_CASE("with two tables a client's raw key closes its connection and touches nothing") {
  TCPStoreServer server(agent_options());
  server.push("inbox", "report");
  RawClient client(server.port());
  client.set("inbox", "forged");
  REQUIRE(client.is_closed_by_server());
  REQUIRE(RawClient(server.port()).add("init/", 1) == 1);
  REQUIRE(server.try_pop("inbox") == "report");
}

TEST_CASE("a push in the server's own process is popped there, in order") {
  TCPStoreServer server(agent_options());
  REQUIRE_FALSE(server.try_pop("inbox"));
  server.push("inbox", "1");
  server.push("inbox", "2");
  REQUIRE(server.try_pop("inbox") == "1");
  REQUIRE(server.try_pop("inbox") == "2");
  REQUIRE_FALSE(server.try_pop("inbox"));
}

TEST_CASE("a callback is called when its queue fills, may use the server, and is over when it has been taken away") {
  TCPStoreServer server(agent_options());
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> seen;
  server.push("inbox", "before");
  server.on_push("inbox", [&] {
    while (auto value = server.try_pop("inbox")) {
      if (*value == "again") server.push("inbox", "from within");
      const std::lock_guard lock(mutex);
      seen.push_back(std::move(*value));
      changed.notify_all();
    }
  });
  const auto wait_for_count = [&](std::size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 30s, [&] { return seen.size() >= count; });
  };
  REQUIRE(wait_for_count(1));
  server.push("inbox", "again");
  server.push("other", "unseen");
  REQUIRE(wait_for_count(3));
  server.on_push("inbox", {});
  server.push("inbox", "after");
  REQUIRE(server.try_pop("inbox") == "after");
  const std::lock_guard lock(mutex);
  REQUIRE(seen == std::vector<std::string>{"before", "again", "from within"});
}

TEST_CASE("an agent's report reaches the leader and the leader's order reaches the agent") {
  TCPStoreServer server(agent_options());
  RawClient agent(server.port());
  REQUIRE(agent.hello({1, Role::kAgent, "job7", "ada", "n1", 0}).status == HelloStatus::kWelcome);
  std::string bytes;
  encode_mail_push(bytes, kInbox, 0, "joined n1");
  agent.send(bytes);
  REQUIRE(agent.receive_u8() == static_cast<int>(MailPushStatus::kKept));
  REQUIRE(server.try_pop(kInbox) == "joined n1\nfrom 127.0.0.1");

  bytes.clear();
  encode_mail_read(bytes, orders_mailbox("n1"), 0);
  agent.send(bytes);
  server.push(orders_mailbox("n1"), "start");
  REQUIRE(agent.receive_u8() == kStopWaiting);
  REQUIRE(agent.receive_u64() == 0);
  REQUIRE(agent.receive_value() == "start");
}

TEST_CASE("when a node's connection closes and stays away its will is pushed") {
  TCPStoreServer server(agent_options());
  RawClient agent(server.port());
  agent.hello({1, Role::kAgent, "job7", "ada", "n1", 0});
  std::string bytes;
  encode_leave_will(bytes, 5, 15'000, 20, "lost n1");
  agent.send(bytes);
  REQUIRE(agent.receive_u8() == static_cast<int>(WillStatus::kHeld));
  REQUIRE_FALSE(server.try_pop(kInbox));
  agent.close();
  std::optional<std::string> message;
  REQUIRE(until([&] { return (message = server.try_pop(kInbox)).has_value(); }));
  REQUIRE(message->starts_with("lost n1\nlost closed "));
}

TEST_CASE("whoever hosts learns that a later host has taken over, and that no agent is left") {
  TCPStoreServer server(agent_options());
  std::atomic<std::uint64_t> epoch{0};
  std::atomic<bool> is_alone{false};
  server.on_newer_epoch([&](std::uint64_t newer) { epoch = newer; });
  RawClient thawed(server.port());
  REQUIRE(thawed.hello({1, Role::kAgent, "job7", "ada", "n2", 3}).status == HelloStatus::kServerIsOld);
  REQUIRE(until([&] { return epoch == 3; }));

  RawClient agent(server.port());
  agent.hello({1, Role::kAgent, "job7", "ada", "n1", 0});
  std::string bytes;
  encode_leave_will(bytes, 5, 15'000, 20, "lost n1");
  agent.send(bytes);
  REQUIRE(agent.receive_u8() == static_cast<int>(WillStatus::kHeld));
  server.on_no_wills([&] { is_alone = true; });
  RawClient(server.port()).ping();
  REQUIRE_FALSE(is_alone);
  bytes.clear();
  encode_cancel_will(bytes);
  agent.send(bytes);
  REQUIRE(until([&] { return is_alone.load(); }));
}

TEST_CASE("a node that goes silent is lost after its keep-alive time and then told so") {
  TCPStoreServer server(agent_options());
  RawClient agent(server.port());
  agent.hello({1, Role::kAgent, "job7", "ada", "n1", 0});
  std::string bytes;
  encode_leave_will(bytes, 5, 30, 10'000, "lost n1");
  agent.send(bytes);
  REQUIRE(agent.receive_u8() == static_cast<int>(WillStatus::kHeld));
  REQUIRE(until([&] { return server.try_pop(kInbox).has_value(); }));
  bytes.clear();
  encode_keep_alive(bytes);
  agent.send(bytes);
  REQUIRE(agent.receive_u8() == static_cast<int>(WillStatus::kLost));
  REQUIRE(agent.receive_u64() > 0);
}

TEST_CASE("a server can be ended while clients wait on it") {
  std::vector<RawClient> clients;
  {
    TCPStoreServer server({});
    for (int i = 0; i < 20; ++i) {
      clients.emplace_back(server.port());
      clients.back().send(wait_for("/never"));
    }
    REQUIRE(until([&] { return server.waiter_count() == 20; }));
  }
  for (auto& client : clients) REQUIRE(client.is_closed_by_server());
}

TEST_CASE("many threads may use the server at once") {
  TCPStoreServer server(agent_options());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto queue = "q" + std::to_string(t);
      for (int i = 0; i < 200; ++i) {
        server.push(queue, std::to_string(i));
        try {
          RawClient client(server.port());
          client.add("init/", 1);
        } catch (const DistNetworkError&) {
          // A round began under its request, and closed it.
        }
        if (i % 50 == 0) server.begin_round();
        if (server.try_pop(queue) != std::to_string(i)) std::abort();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  REQUIRE(RawClient(server.port()).add("/n", 1) == 1);
}
