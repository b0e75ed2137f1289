#include "runtime/store/store_service.hpp"

#include "tests/support/catch.hpp"

#include <array>

using namespace std::chrono_literals;
using namespace tensorplay::store;

namespace {

/// One connection to a service, without a network: bytes in, bytes out.
struct Peer {
  Session session;
  RequestParser parser;
  std::string closed_because;

  std::string take_output() {
    std::string bytes;
    while (!session.output.empty()) {
      std::array<iovec, 8> pieces;
      const auto count = session.output.fill(pieces.data(), pieces.size());
      std::size_t taken = 0;
      for (std::size_t i = 0; i < count; ++i) {
        bytes.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
        taken += pieces[i].iov_len;
      }
      session.output.consume(taken);
    }
    return bytes;
  }
};

struct Service {
  explicit Service(bool has_agent_table = true, std::shared_ptr<const Authenticator> authenticator = nullptr)
      : service({has_agent_table, "job7", "ada", 4, std::move(authenticator)}) {}

  std::unique_ptr<Peer> connect() {
    auto peer = std::make_unique<Peer>();
    peer->session.id = next_id++;
    peer->session.peer = "10.0.0.9";
    service.opened(peer->session);
    std::string bytes;
    encode_validate(bytes);
    send(*peer, bytes);
    return peer;
  }

  std::unique_ptr<Peer> connect_agent(const std::string& name) {
    auto peer = connect();
    std::string bytes;
    encode_hello(bytes, {1, Role::kAgent, "job7", "ada", name, 4});
    send(*peer, bytes);
    REQUIRE(peer->closed_because.empty());
    peer->take_output();
    return peer;
  }

  void send(Peer& peer, std::string_view data) {
    while (peer.closed_because.empty()) {
      Request* request = peer.parser.next(data);
      if (request == nullptr) return;
      if (auto refusal = service.handle(peer.session, *request, now, 1'700'000'000'000'000)) {
        peer.closed_because = *refusal;
      }
    }
  }

  /// Sends one request and gives what came back.
  template <typename Encode, typename... Args>
  std::string ask(Peer& peer, Encode encode, Args&&... args) {
    std::string bytes;
    encode(bytes, std::forward<Args>(args)...);
    send(peer, bytes);
    return peer.take_output();
  }

  HelloStatus hello(const Hello& hello) {
    auto peer = connect();
    const auto reply = ask(*peer, encode_hello, hello);
    const auto status = static_cast<HelloStatus>(reply.at(0));
    REQUIRE(peer->closed_because.empty() == (status == HelloStatus::kWelcome));
    service.closed(peer->session, now);
    return status;
  }

  StoreService service;
  std::uint64_t next_id = 1;
  StoreService::TimePoint now{};
};

std::string byte(int value) {
  return std::string(1, static_cast<char>(value));
}

std::string value_reply(std::string_view value) {
  std::string bytes;
  put_bytes(bytes, value);
  return bytes;
}

}  // namespace

TEST_CASE("every operation of PyTorch's client is answered with its bytes") {
  Service s(false);
  auto peer = s.connect();
  const auto i64 = [](std::int64_t value) {
    std::string bytes;
    put_i64(bytes, value);
    return bytes;
  };
  REQUIRE(s.ask(*peer, encode_set, "/k", "v").empty());
  REQUIRE(s.ask(*peer, encode_get, "/k") == value_reply("v"));
  REQUIRE(s.ask(*peer, encode_get, "/missing") == value_reply(""));
  REQUIRE(s.ask(*peer, encode_compare_set, "/k", "v", "w") == value_reply("w"));
  REQUIRE(s.ask(*peer, encode_add, "/n", -3) == i64(-3));
  REQUIRE(s.ask(*peer, encode_check, std::vector<std::string>{"/k", "/n"}) == byte(0));
  REQUIRE(s.ask(*peer, encode_check, std::vector<std::string>{"/k", "/no"}) == byte(1));
  REQUIRE(s.ask(*peer, encode_check, std::vector<std::string>{}) == byte(0));
  REQUIRE(s.ask(*peer, encode_wait, std::vector<std::string>{"/k"}) == byte(0));
  REQUIRE(s.ask(*peer, encode_wait, std::vector<std::string>{"/no"}).empty());
  REQUIRE(s.ask(*peer, encode_cancel_wait) == byte(1));
  REQUIRE(s.ask(*peer, encode_append, "/k", "x").empty());
  REQUIRE(s.ask(*peer, encode_multi_get, std::vector<std::string>{"/k", "/n"}) ==
          value_reply("wx") + value_reply("-3"));
  REQUIRE(
      s.ask(*peer, encode_multi_set, std::vector<std::string>{"/a", "/b"}, std::vector<std::string>{"1", "2"}).empty());
  REQUIRE(s.ask(*peer, encode_get_num_keys) == i64(4));
  REQUIRE(s.ask(*peer, encode_delete_key, "/a") == i64(1));
  REQUIRE(s.ask(*peer, encode_delete_key, "/a") == i64(0));
  REQUIRE(s.ask(*peer, encode_ping, 0xABCD1234u) == std::string("\x34\x12\xCD\xAB"));
  REQUIRE(s.ask(*peer, encode_queue_push, "/q", "1").empty());
  REQUIRE(s.ask(*peer, encode_queue_len, "/q") == i64(1));
  REQUIRE(s.ask(*peer, encode_queue_pop, "/q") == i64(1) + value_reply("1"));
  REQUIRE(s.ask(*peer, encode_queue_pop, "/q") == i64(0));
  REQUIRE(s.ask(*peer, encode_list_keys).size() == 8 + 3 * (8 + 2));
  REQUIRE(s.ask(*peer, encode_barrier, "/bar", 1) == byte(0));
  REQUIRE(peer->closed_because.empty());
}

TEST_CASE("the probe tells our server from others without a hello") {
  for (const bool has_agent_table : {false, true}) {
    Service s(has_agent_table);
    auto peer = s.connect();
    REQUIRE(s.ask(*peer, encode_check, std::vector<std::string>{std::string(kExtensionProbeKey)}) == byte(0));
    REQUIRE_FALSE(peer->session.used_workers_table);
  }
}

TEST_CASE("an agent's hello must match in version, run, user and epoch; a client's only where it says something") {
  Service s;
  REQUIRE(s.hello({1, Role::kAgent, "job7", "ada", "n1", 4}) == HelloStatus::kWelcome);
  REQUIRE(s.hello({2, Role::kAgent, "job7", "ada", "n1", 4}) == HelloStatus::kOtherVersion);
  REQUIRE(s.hello({1, Role::kAgent, "", "ada", "n1", 4}) == HelloStatus::kOtherRun);
  REQUIRE(s.hello({1, Role::kAgent, "job7", "", "n1", 4}) == HelloStatus::kOtherUser);
  REQUIRE(s.hello({1, Role::kAgent, "job7", "ada", "n1", 3}) == HelloStatus::kOldEpoch);
  REQUIRE(s.hello({1, Role::kAgent, "job7", "ada", "n1", 5}) == HelloStatus::kServerIsOld);
  REQUIRE(s.hello({1, Role::kClient, "", "", "", 0}) == HelloStatus::kWelcome);
  REQUIRE(s.hello({1, Role::kClient, "job8", "", "", 0}) == HelloStatus::kOtherRun);
}

TEST_CASE("our own opcodes are closed to those who have not said hello, and the agents' to those who are none") {
  Service s;
  auto stranger = s.connect();
  s.ask(*stranger, encode_get_wait, "/k");
  REQUIRE_FALSE(stranger->closed_because.empty());

  auto client = s.connect();
  s.ask(*client, encode_hello, Hello{});
  REQUIRE(s.ask(*client, encode_get_wait, "/k").empty());
  REQUIRE(client->closed_because.empty());
  s.ask(*client, encode_cancel_wait);
  s.ask(*client, encode_mail_push, kInbox, 0, "forged");
  REQUIRE_FALSE(client->closed_because.empty());
  REQUIRE_FALSE(s.service.try_pop(kInbox));
}

TEST_CASE("the network may push to the inbox and read orders, and nothing else") {
  Service s;
  s.service.push(kInbox, "report");
  s.service.push(orders_mailbox("n1"), "start");
  auto forger = s.connect_agent("n2");
  s.ask(*forger, encode_mail_push, orders_mailbox("n1"), 0, "forged");
  REQUIRE_FALSE(forger->closed_because.empty());
  auto reader = s.connect_agent("n2");
  s.ask(*reader, encode_mail_read, kInbox, 0);
  REQUIRE_FALSE(reader->closed_because.empty());
  // Reading another's orders does not take them away, wherever one begins.
  auto other = s.connect_agent("n2");
  REQUIRE(s.ask(*other, encode_mail_read, orders_mailbox("n1"), 1).empty());
  auto owner = s.connect_agent("n1");
  REQUIRE(s.ask(*owner, encode_mail_read, orders_mailbox("n1"), 0) ==
          byte(0) + std::string(8, '\0') + value_reply("start"));
}

TEST_CASE("a get that waits is one request, answered at once or when the key comes") {
  Service s(false);
  auto client = s.connect();
  s.ask(*client, encode_hello, Hello{});
  REQUIRE(s.ask(*client, encode_get_wait, "/k").empty());
  auto other = s.connect();
  s.ask(*other, encode_set, "/k", "v");
  REQUIRE(client->take_output() == byte(0) + value_reply("v"));
  REQUIRE(s.ask(*client, encode_get_wait, "/k") == byte(0) + value_reply("v"));
  REQUIRE(s.ask(*client, encode_multi_get_wait, std::vector<std::string>{"/k", "/k"}) ==
          byte(0) + value_reply("v") + value_reply("v"));
  REQUIRE(s.ask(*client, encode_queue_pop_wait, "/q").empty());
  s.ask(*other, encode_queue_push, "/q", "x");
  REQUIRE(client->take_output() == byte(0) + value_reply("x"));
}

TEST_CASE("sessions whose output has changed are named once") {
  Service s(false);
  auto a = s.connect();
  auto b = s.connect();
  std::string bytes;
  encode_wait(bytes, {"/k"});
  s.send(*b, bytes);
  bytes.clear();
  encode_ping(bytes, 1);
  encode_ping(bytes, 2);
  encode_set(bytes, "/k", "");
  s.send(*a, bytes);
  std::vector<Session*> dirty;
  s.service.take_dirty(dirty);
  REQUIRE(dirty == std::vector<Session*>{&a->session, &b->session});
  REQUIRE_FALSE(s.service.has_dirty());
}

TEST_CASE("a session that closes while it is named is named no more") {
  Service s(false);
  auto a = s.connect();
  s.ask(*a, encode_ping, 1);
  s.service.closed(a->session, s.now);
  REQUIRE_FALSE(s.service.has_dirty());
}

TEST_CASE("a session of an earlier round may ping and cannot touch a key") {
  Service s;
  auto old = s.connect();
  s.service.begin_round();
  REQUIRE(s.ask(*old, encode_ping, 7).size() == 4);
  s.ask(*old, encode_get, "/k");
  REQUIRE(old->closed_because == "it belongs to an earlier round");
}

TEST_CASE("a will fires into the inbox, and a reply tells its owner") {
  Service s;
  auto agent = s.connect_agent("n1");
  REQUIRE(s.ask(*agent, encode_leave_will, 9, 1000, 100, "lost n1") == byte(0));
  REQUIRE(s.ask(*agent, encode_leave_will, 9, 1000, 100, "lost n1") == byte(1));
  s.now += 900ms;
  auto reply = s.ask(*agent, encode_keep_alive);
  REQUIRE(reply[0] == 0);
  REQUIRE(get_u64(reply.data() + 1) == 1'700'000'000'000'000);
  REQUIRE(s.service.next_tick() == s.now + 1000ms);
  s.now += 1000ms;
  s.service.tick(s.now);
  REQUIRE(s.service.try_pop(kInbox) == "lost n1\nlost silent 1000");
  REQUIRE(s.ask(*agent, encode_keep_alive)[0] == 3);
  REQUIRE(s.ask(*agent, encode_leave_will, 9, 1000, 100, "lost n1") == byte(3));
}

TEST_CASE("a guardian's word fires its agent's will at once") {
  Service s;
  auto agent = s.connect_agent("n1");
  s.ask(*agent, encode_leave_will, 9, 60'000, 1000, "lost n1");
  auto guardian = s.connect_agent("n1/guardian");
  REQUIRE(s.ask(*guardian, encode_declare_lost, "n1", 8) == byte(1));
  REQUIRE(s.ask(*guardian, encode_declare_lost, "n1", 9) == byte(0));
  REQUIRE(s.service.try_pop(kInbox) == "lost n1\nlost declared 0");
}

TEST_CASE("leaving cancels the will") {
  Service s;
  auto agent = s.connect_agent("n1");
  s.ask(*agent, encode_leave_will, 9, 1000, 100, "lost n1");
  REQUIRE(s.ask(*agent, encode_cancel_will) == byte(0));
  s.service.closed(agent->session, s.now);
  REQUIRE_FALSE(s.service.next_tick());
}

TEST_CASE("a report that is sent again on a new connection is kept once") {
  Service s;
  auto first = s.connect_agent("n1");
  REQUIRE(s.ask(*first, encode_mail_push, kInbox, 0, "joined") == byte(0));
  s.service.closed(first->session, s.now);
  auto second = s.connect_agent("n1");
  REQUIRE(s.ask(*second, encode_mail_push, kInbox, 0, "joined") == byte(1));
  REQUIRE(s.service.try_pop(kInbox) == "joined\nfrom 10.0.0.9");
  REQUIRE_FALSE(s.service.try_pop(kInbox));
}

namespace {

/// Proofs that people can read, in place of cryptography.
struct FakeAuthenticator final : Authenticator {
  std::string make_nonce() const override { return std::string(kNonceBytes, 's'); }
  std::string client_proof(const HelloTranscript& t) const override { return "client of " + words(t); }
  std::string server_proof(const HelloTranscript& t) const override { return "server of " + words(t); }
  bool is_equal(std::string_view a, std::string_view b) const override { return a == b; }
  static std::string words(const HelloTranscript& t) {
    return t.run_id + ' ' + t.user + ' ' + t.agent + ' ' + t.server_nonce + ' ' + t.client_nonce;
  }
};

struct SecretService : Service {
  SecretService() : Service(true, std::make_shared<FakeAuthenticator>()) {}
  std::string hello_of_agent(Peer& peer) {
    return ask(peer, encode_hello, Hello{1, Role::kAgent, "job7", "ada", "n1", 4});
  }
  std::string prove(Peer& peer, const std::string& proof) { return ask(peer, encode_prove, client_nonce, proof); }

  std::string client_nonce = std::string(kNonceBytes, 'c');
  HelloTranscript transcript{"job7", "ada", "n1", std::string(kNonceBytes, 's'), client_nonce};
};

std::string proof_reply(ProofStatus status, std::string_view proof = {}) {
  std::string bytes;
  encode_proof_reply(bytes, status, proof);
  return bytes;
}

}  // namespace

TEST_CASE("with a secret an agent gets nowhere before both sides have proved it") {
  SecretService s;
  const FakeAuthenticator known;
  auto agent = s.connect();
  const auto challenge = s.hello_of_agent(*agent);
  REQUIRE(static_cast<HelloStatus>(challenge.at(0)) == HelloStatus::kProve);
  REQUIRE(challenge.ends_with(value_reply(std::string(kNonceBytes, 's'))));
  REQUIRE(s.prove(*agent, known.client_proof(s.transcript)) ==
          proof_reply(ProofStatus::kProven, known.server_proof(s.transcript)));
  REQUIRE(s.ask(*agent, encode_mail_push, kInbox, 0, "joined") == byte(0));
  REQUIRE(s.service.try_pop(kInbox) == "joined\nfrom 10.0.0.9");

  auto hasty = s.connect();
  s.hello_of_agent(*hasty);
  REQUIRE(s.ask(*hasty, encode_mail_push, kInbox, 0, "forged").empty());
  REQUIRE_FALSE(hasty->closed_because.empty());
  REQUIRE_FALSE(s.service.try_pop(kInbox));
}

TEST_CASE("a wrong, missing, repeated or reflected proof costs the connection") {
  const FakeAuthenticator known;
  const auto refused = [&](ProofStatus status, const auto& act) {
    SecretService s;
    auto agent = s.connect();
    s.hello_of_agent(*agent);
    REQUIRE(act(s, *agent) == proof_reply(status));
    REQUIRE_FALSE(agent->closed_because.empty());
  };
  refused(ProofStatus::kWrong, [&](auto& s, auto& agent) { return s.prove(agent, "guess"); });
  refused(ProofStatus::kWrong, [&](auto& s, auto& agent) { return s.prove(agent, known.server_proof(s.transcript)); });
  refused(ProofStatus::kWrong, [&](auto& s, auto& agent) {
    s.client_nonce = s.transcript.client_nonce = "short";
    return s.prove(agent, known.client_proof(s.transcript));
  });
  refused(ProofStatus::kNoProof, [&](auto& s, auto& agent) { return s.ask(agent, encode_prove, "", ""); });

  SecretService s;
  auto uninvited = s.connect();
  REQUIRE(s.prove(*uninvited, known.client_proof(s.transcript)).empty());
  REQUIRE_FALSE(uninvited->closed_because.empty());
  auto twice = s.connect();
  s.hello_of_agent(*twice);
  s.prove(*twice, known.client_proof(s.transcript));
  REQUIRE(s.prove(*twice, known.client_proof(s.transcript)).empty());
  REQUIRE_FALSE(twice->closed_because.empty());
}

TEST_CASE("an agent that proves itself to a store without a secret is told so, workers need no proof") {
  Service open;
  auto agent = open.connect_agent("n1");
  REQUIRE(open.ask(*agent, encode_prove, "", "") == proof_reply(ProofStatus::kNotAsked));
  REQUIRE_FALSE(agent->closed_because.empty());

  SecretService closed;
  auto worker = closed.connect();
  REQUIRE(static_cast<HelloStatus>(closed.ask(*worker, encode_hello, Hello{}).at(0)) == HelloStatus::kWelcome);
  REQUIRE(closed.ask(*worker, encode_get_wait, "/k").empty());
  REQUIRE(worker->closed_because.empty());
}
