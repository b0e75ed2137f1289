#include "runtime/store/store_client.hpp"

#include "runtime/store/wire_codec.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scripted_server.hpp"

#include <unistd.h>

using namespace std::chrono_literals;
using namespace tensorplay::store;
using namespace tensorplay::distributed;
using Catch::Matchers::Contains;
using tensorplay::testing::ScriptedServer;

namespace {

std::string probe_request() {
  std::string bytes;
  encode_check(bytes, {std::string(kExtensionProbeKey)});
  return bytes;
}

/// Answers the handshake as torch's server does.
void shake_hands(int fd) {
  const std::string opening = ScriptedServer::read(fd, 5 + 5 + probe_request().size());
  ScriptedServer::write(fd, opening.substr(6, 4));       // the nonce
  ScriptedServer::write(fd, std::string(1, kNotReady));  // no extensions
}

std::string wait_request(const std::string& key) {
  std::string bytes;
  encode_wait(bytes, {key});
  return bytes;
}

StoreClient connect(const ScriptedServer& server, Deadline deadline = Deadline::after(10s)) {
  return {"127.0.0.1", server.port(), deadline, 200ms};
}

}  // namespace

TEST_CASE("the client's first bytes come in one piece, the magic before all else") {
  std::string opening;
  ScriptedServer server({[&](int fd) {
    char bytes[256];
    const auto got = tensorplay::base::recv_some(fd, bytes, sizeof bytes, Deadline::after(10s));
    opening.assign(bytes, got);
    std::string answer(bytes + 6, 4);
    answer += static_cast<char>(kNotReady);
    ScriptedServer::write(fd, answer);
    ScriptedServer::until_closed(fd);
  }});
  { const auto client = connect(server); }
  std::string expected;
  encode_validate(expected);
  encode_ping(expected, static_cast<std::uint32_t>(getpid()));
  REQUIRE(opening == expected + probe_request());
}

TEST_CASE("a server that closes on a ping, as torch 2.4 does, is asked again without one") {
  ScriptedServer server({[](int fd) { ScriptedServer::read(fd, 5); },
                         [](int fd) {
                           ScriptedServer::read(fd, 5 + probe_request().size());
                           ScriptedServer::write(fd, std::string(1, kNotReady));
                           ScriptedServer::until_closed(fd);
                         }});
  auto client = connect(server);
  REQUIRE_FALSE(client.has_ping());
  REQUIRE_FALSE(client.has_extensions());
}

TEST_CASE("a port held by something that is not a store is named with what it said") {
  ScriptedServer server({[](int fd) {
    ScriptedServer::write(fd, "SSH-2.0-OpenSSH_9.2\r\n");
    ScriptedServer::until_closed(fd);
  }});
  REQUIRE_THROWS_WITH(connect(server), Contains("127.0.0.1:" + std::to_string(server.port())) &&
                                           Contains("is held by something that is not a store (it sent \"SSH-2.0"));
  REQUIRE(server.connections() == 1);
}

TEST_CASE("a peer that accepts and stays silent ends in a timeout, not a hang") {
  ScriptedServer server({[](int fd) { ScriptedServer::until_closed(fd); }});
  REQUIRE_THROWS_AS(connect(server, Deadline::after(50ms)), TimeoutError);
}

TEST_CASE("a peer that closes every connection is tried again until the deadline") {
  ScriptedServer server({[](int fd) { ScriptedServer::read(fd, 1); }});
  REQUIRE_THROWS_AS(connect(server, Deadline::after(150ms)), DistNetworkError);
  REQUIRE(server.connections() > 2);
}

TEST_CASE("a wait that times out is cancelled and leaves the connection usable") {
  ScriptedServer server({[](int fd) {
    shake_hands(fd);
    ScriptedServer::read(fd, wait_request("/k").size());
    REQUIRE(ScriptedServer::read(fd, 1)[0] == static_cast<char>(Opcode::kCancelWait));
    ScriptedServer::write(fd, std::string(1, kWaitCanceled));
    ScriptedServer::read(fd, 5);
    ScriptedServer::write(fd, std::string(8, '\0'));
    ScriptedServer::until_closed(fd);
  }});
  auto client = connect(server);
  REQUIRE_FALSE(client.wait({"/k"}, Deadline::after(10ms)));
}

TEST_CASE("keys that arrive while the wait is being cancelled count as arrived") {
  ScriptedServer server({[](int fd) {
    shake_hands(fd);
    ScriptedServer::read(fd, wait_request("/k").size() + 1);
    ScriptedServer::write(fd, {"\0\1", 2});
    ScriptedServer::until_closed(fd);
  }});
  auto client = connect(server);
  REQUIRE(client.wait({"/k"}, Deadline::after(10ms)));
}

TEST_CASE("a server that never answers the cancellation costs the connection, not an endless wait") {
  ScriptedServer server({[](int fd) {
    shake_hands(fd);
    ScriptedServer::until_closed(fd);
  }});
  auto client = connect(server);
  REQUIRE_THROWS_WITH(client.wait({"/k"}, Deadline::after(10ms)), Contains("wait of /k: no answer"));
  REQUIRE_THROWS_WITH(client.check({"/k"}, Deadline::after(1s)),
                      Contains("check: the connection is closed since an earlier error: ") && Contains("wait of /k"));
}

TEST_CASE("a connection that ends within an answer is dead for good, and says why") {
  ScriptedServer server({[](int fd) {
    shake_hands(fd);
    ScriptedServer::read(fd, 1);
    ScriptedServer::write(fd, "\1\2\3");
  }});
  auto client = connect(server);
  REQUIRE_THROWS_WITH(client.add("/n", 1, Deadline::after(10s)),
                      Contains("add of /n: ") && Contains("the value is not a number"));
  REQUIRE_THROWS_AS(client.num_keys(Deadline::after(10s)), DistNetworkError);
}

TEST_CASE("an answer that announces more than any store holds takes no memory") {
  ScriptedServer server({[](int fd) {
    shake_hands(fd);
    ScriptedServer::read(fd, 1);
    ScriptedServer::write(fd, std::string(8, '\x7f'));
    ScriptedServer::until_closed(fd);
  }});
  auto client = connect(server);
  REQUIRE_THROWS_WITH(client.compare_set("/k", "", "v", Deadline::after(10s)), Contains("not a store's answer"));
}

TEST_CASE("a request that closes the connection without an answer is suspected by the next") {
  ScriptedServer server({[](int fd) {
    shake_hands(fd);
    ScriptedServer::read(fd, 1);
  }});
  auto client = connect(server);
  client.queue_push("/q", "v", Deadline::after(10s));
  REQUIRE_THROWS_WITH(client.ping(Deadline::after(10s)), Contains("perhaps for the queue_push before it"));
}

TEST_CASE("keys and values beyond the protocol's limits are refused before anything is sent") {
  ScriptedServer server({[](int fd) {
    shake_hands(fd);
    ScriptedServer::until_closed(fd);
  }});
  auto client = connect(server);
  const auto deadline = Deadline::after(10s);
  client.set(std::string(kMaxKeyBytes, 'k'), "v", deadline);
  REQUIRE_THROWS_AS(client.set(std::string(kMaxKeyBytes + 1, 'k'), "v", deadline), DistStoreError);
  REQUIRE_THROWS_WITH(client.append("/k", std::string(kMaxPayloadBytes + 1, 'v'), deadline),
                      Contains("a value of 8388609 bytes for key /k: servers take at most 8388608"));
}
