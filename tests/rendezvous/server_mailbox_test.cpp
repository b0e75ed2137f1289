#include "rendezvous/server_mailbox.hpp"

#include "rendezvous/leader.hpp"
#include "tests/support/catch.hpp"

#include <chrono>

using namespace tensorplay::rendezvous;
using namespace std::chrono_literals;
using tensorplay::store::TCPStoreServer;
using tensorplay::store::TCPStoreServerOptions;

namespace {

Joined joined(const AgentId& agent) {
  Joined j;
  j.agent = agent;
  j.host = agent;
  return j;
}

}  // namespace

TEST_CASE("an agent beside the leader gets its order without any socket") {
  TCPStoreServer server(TCPStoreServerOptions{});
  asio::io_context loop;
  ServerMailbox mail(server, false);
  Leader leader(loop, mail, {}, [](const Note&) {});
  std::vector<Order> orders;
  MailReader reader(loop, mail, orders_queue("a"),
                    [&](const std::string& text) { orders.push_back(decode_order(text)); });
  mail.post(kInbox, encode(Report(joined("a"))));
  loop.poll();
  REQUIRE(orders.size() == 1);
  REQUIRE(std::holds_alternative<StartOrder>(orders[0]));
  REQUIRE(server.connection_count() == 0);
}

TEST_CASE("mail that the server itself was given wakes the reader on its own loop") {
  TCPStoreServerOptions options;
  options.has_agent_table = true;
  TCPStoreServer server(std::move(options));
  asio::io_context loop;
  const auto work = asio::make_work_guard(loop);
  ServerMailbox mail(server, true);
  std::vector<std::string> texts;
  MailReader reader(loop, mail, "queue", [&](const std::string& text) {
    texts.push_back(text);
    if (texts.size() == 3) loop.stop();
  });
  loop.poll();  // the reader has looked, and sleeps
  for (const auto* text : {"one", "two", "three"}) server.push("queue", text);
  loop.restart();
  loop.run_for(30s);
  REQUIRE(texts == std::vector<std::string>{"one", "two", "three"});
}

TEST_CASE("a reader that is gone is not called, and its mail stays") {
  TCPStoreServer server(TCPStoreServerOptions{});
  asio::io_context loop;
  ServerMailbox mail(server, false);
  int calls = 0;
  {
    MailReader reader(loop, mail, "queue", [&](const std::string&) { ++calls; });
    mail.post("queue", "x");
  }
  loop.poll();
  REQUIRE(calls == 0);
  REQUIRE(mail.take("queue") == "x");
}
