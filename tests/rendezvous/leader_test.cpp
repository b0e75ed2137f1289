#include "rendezvous/leader.hpp"

#include "runtime/base/log.hpp"
#include "tests/rendezvous/memory_mailbox.hpp"
#include "tests/support/catch.hpp"

using namespace tensorplay::rendezvous;
using namespace std::chrono_literals;
namespace log_ = tensorplay::base::log;

namespace {

struct World {
  asio::io_context loop;
  MemoryMailbox mail;
  std::vector<std::string> notes;
  Leader leader;

  explicit World(MembershipOptions options)
      : leader(loop, mail, options, [this](const Note& note) { notes.push_back(note.text); }) {}

  void report(const Report& report) {
    mail.post(kInbox, encode(report));
    loop.restart();
    loop.poll();
  }
  std::optional<Order> order_for(const AgentId& agent) {
    const auto text = mail.take(orders_queue(agent));
    if (!text) return std::nullopt;
    return decode_order(*text);
  }
  /// The same, news passed over.
  std::optional<Order> deed_for(const AgentId& agent) {
    auto order = order_for(agent);
    while (order && std::holds_alternative<NewsOrder>(*order)) order = order_for(agent);
    return order;
  }
};

Joined joined(const AgentId& agent) {
  return {agent, agent, {agent}, 2, "default", std::nullopt, false, 29500};
}

}  // namespace

TEST_CASE("the leader answers a join with an order in that agent's queue") {
  World world({.min_nodes = 2, .max_nodes = 2});
  world.report(joined("a"));
  REQUIRE(std::get<NewsOrder>(*world.order_for("a")).text == "1 of 2 nodes are here (a)");
  world.report(joined("b"));
  REQUIRE(std::get<StartOrder>(*world.deed_for("a")).first_rank == 0);
  REQUIRE(std::get<StartOrder>(*world.order_for("b")).first_rank == 2);
  REQUIRE(world.notes.empty());
}

TEST_CASE("reports that came before the leader was there are read") {
  asio::io_context loop;
  MemoryMailbox mail;
  mail.post(kInbox, encode(Report(joined("a"))));
  Leader leader(loop, mail, {}, [](const Note&) {});
  loop.poll();
  REQUIRE(mail.take(orders_queue("a")));
}

TEST_CASE("nonsense in the inbox costs a line and nothing else") {
  std::vector<std::string> lines;
  log_::configure({.level = log_::Level::kWarning, .program = "tprun", .sink = [&](log_::Level, std::string_view line) {
                     lines.emplace_back(line);
                   }});
  World world({});
  world.mail.post(kInbox, "{\"type\":\"joined\"}");
  world.mail.post(kInbox, std::string("\0\xff garbage", 10));
  world.report(joined("a"));
  log_::configure({});
  REQUIRE(world.order_for("a"));
  REQUIRE(lines.size() == 1);
  REQUIRE_THAT(lines[0], Catch::Contains("a report was ignored"));
}

TEST_CASE("the last call ends by the leader's own timer") {
  World world({.min_nodes = 1, .max_nodes = 2, .last_call = 20ms});
  world.report(joined("a"));
  REQUIRE_FALSE(world.deed_for("a"));
  world.loop.restart();
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  std::optional<Order> order;
  while (!order && std::chrono::steady_clock::now() < deadline) {
    world.loop.run_one_for(1s);
    order = world.deed_for("a");
  }
  REQUIRE(order);
}

TEST_CASE("an address that the server saw a report come from is known as its sender's") {
  World world({.min_nodes = 1, .max_nodes = 1});
  world.mail.post(kInbox, encode(Report(joined("a"))) + "\nfrom 10.9.8.7");
  world.loop.poll();
  REQUIRE(std::holds_alternative<StartOrder>(*world.order_for("a")));
}

TEST_CASE("a will that comes true stops the world and says how it came to that") {
  World world({.min_nodes = 1, .max_nodes = 2});
  world.report(joined("a"));
  world.report(joined("b"));
  REQUIRE(std::holds_alternative<StartOrder>(*world.deed_for("a")));
  world.mail.post(kInbox, encode(Report(Will{"b", 15, 2})) + "\nlost silent 15040");
  world.loop.restart();
  world.loop.poll();
  const auto order = world.deed_for("a");
  REQUIRE(std::holds_alternative<StopOrder>(*order));
  REQUIRE_THAT(std::get<StopOrder>(*order).why, Catch::Contains("no answer for 15 s"));
}
