#include "agent/guardian_wire.hpp"

#include "tests/support/catch.hpp"

using namespace tensorplay::agent;

TEST_CASE("what an agent tells its guardian arrives as it was said") {
  const AgentLease lease{
      "192.0.2.1", 29400, "job7", "ada", "n1_12_ab", ~std::uint64_t{0}, 3, std::chrono::milliseconds(15'000)};
  REQUIRE(std::get<AgentLease>(*decode_agent_message(encode(lease))) == lease);
  const auto result = std::get<AgentResult>(*decode_agent_message(encode(AgentResult{139, 15, true})));
  REQUIRE(result.exit_code == 139);
  REQUIRE(result.stop_signal == 15);
  REQUIRE(result.leaves_daemons);
  REQUIRE(std::holds_alternative<Heartbeat>(*decode_agent_message(encode(Heartbeat{}))));
}

TEST_CASE("what is cut short, too long or unknown is no message") {
  const auto whole = encode(AgentLease{"h", 1, "r", "u", "a", 2, 3, std::chrono::milliseconds(4)});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    REQUIRE_FALSE(decode_agent_message(std::string_view(whole).substr(0, size)));
  }
  REQUIRE_FALSE(decode_agent_message(whole + "x"));
  REQUIRE_FALSE(decode_agent_message("\x7f"));
}
