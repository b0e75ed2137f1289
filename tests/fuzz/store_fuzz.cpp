// Fuzzes everything of the store server that a peer's bytes reach before there is a socket: parser, service, key table,
// mailboxes, wills, output.
//
// The input is a script: chunks of bytes for one of four connections, cut where the input says, with the clock moving
// on and connections closing between them. What must hold whatever the input: no sanitizer report; a stream cut in
// pieces gives the same requests as the whole; a closed connection is never answered; output stays bounded; where there
// is a secret nobody is an agent without a proof.
#include "runtime/store/store_service.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

using namespace tensorplay::store;

namespace {

constexpr std::size_t kConnections = 4;

void require(bool condition) {
  if (!condition) std::abort();
}

/// The proofs that the corpus knows, in place of cryptography.
struct FakeAuthenticator final : Authenticator {
  std::string make_nonce() const override { return std::string(kNonceBytes, 's'); }
  std::string client_proof(const HelloTranscript& transcript) const override { return "c" + transcript.agent; }
  std::string server_proof(const HelloTranscript& transcript) const override { return "s" + transcript.agent; }
  bool is_equal(std::string_view a, std::string_view b) const override { return a == b; }
};

struct Peer {
  Session session;
  RequestParser parser;
  bool is_open = true;
  bool has_proved = false;
};

class Script {
 public:
  explicit Script(std::string_view input) : input_(input) {}

  std::uint8_t next_byte() {
    if (input_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(input_.front());
    input_.remove_prefix(1);
    return byte;
  }
  std::string_view next_chunk(std::size_t size) {
    const auto chunk = input_.substr(0, size);
    input_.remove_prefix(chunk.size());
    return chunk;
  }
  bool is_over() const { return input_.empty(); }

 private:
  std::string_view input_;
};

class World {
 public:
  World(bool has_agent_table, bool has_secret)
      : has_secret_(has_secret),
        service_({has_agent_table, "job", "me", 0, has_secret ? std::make_shared<FakeAuthenticator>() : nullptr}) {}

  ~World() {
    for (auto& peer : peers_) {
      if (peer) close(*peer);
    }
  }

  void receive(std::size_t index, std::string_view data) {
    if (!peers_[index]) open(index);
    Peer& peer = *peers_[index];
    while (Request* request = peer.parser.next(data)) {
      const bool proves = request->opcode == Opcode::kProve;
      const bool refused = service_.handle(peer.session, *request, now_, 0).has_value();
      peer.has_proved = peer.has_proved || (proves && !refused);
      require(!has_secret_ || !peer.session.said_hello || peer.session.role != Role::kAgent || peer.has_proved);
      require(peer.session.output.size() <= StoreService::kMaxUnsentBytes + (64 << 20));
      if (refused) {
        close(peer);
        peers_[index].reset();
        return;
      }
    }
    if (!peer.parser.error().empty()) {
      close(peer);
      peers_[index].reset();
    }
    drain();
  }

  void hang_up(std::size_t index) {
    if (!peers_[index]) return;
    close(*peers_[index]);
    peers_[index].reset();
    drain();
  }

  void pass(std::chrono::milliseconds time) {
    now_ += time;
    for (const auto id : service_.due_wills(now_)) require(id != 0);
    service_.tick(now_);
    drain();
  }

  void begin_round() {
    service_.begin_round();
    for (auto& peer : peers_) {
      if (!peer || !peer->session.used_workers_table) continue;
      close(*peer);
      peer.reset();
    }
    require(service_.keys().size() == 0 && service_.keys().waiter_count() == 0);
  }

  void pop_inbox() { service_.try_pop(kInbox); }
  void push_order() { service_.push(orders_mailbox("a"), "order"); }

 private:
  void open(std::size_t index) {
    peers_[index] = std::make_unique<Peer>();
    peers_[index]->session.id = ++last_id_;
    service_.opened(peers_[index]->session);
    std::string magic;
    encode_validate(magic);
    std::string_view data = magic;
    require(peers_[index]->parser.next(data) == nullptr && data.empty());
  }

  void close(Peer& peer) { service_.closed(peer.session, now_); }

  /// Sends what there is, in pieces of an odd size.
  void drain() {
    service_.take_dirty(dirty_);
    for (Session* session : dirty_) {
      session->is_dirty = false;
      while (!session->output.empty()) {
        std::array<iovec, 3> pieces;
        const auto count = session->output.fill(pieces.data(), pieces.size());
        require(count > 0);
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < count; ++i) bytes += pieces[i].iov_len;
        require(bytes > 0 && bytes <= session->output.size());
        session->output.consume(bytes > 4099 ? 4099 : bytes);
      }
    }
  }

  bool has_secret_;
  StoreService service_;
  std::array<std::unique_ptr<Peer>, kConnections> peers_;
  std::vector<Session*> dirty_;
  std::uint64_t last_id_ = 0;
  StoreService::TimePoint now_{};
};

/// What a stream amounts to, as one number.
std::uint64_t digest(std::string_view stream, std::size_t piece_size) {
  RequestParser parser;
  std::uint64_t hash = 14695981039346656037ull;
  const auto mix = [&](std::string_view text) {
    for (const char byte : text) hash = (hash ^ static_cast<std::uint8_t>(byte)) * 1099511628211ull;
    hash = (hash ^ text.size()) * 1099511628211ull;
  };
  while (!stream.empty() && parser.error().empty()) {
    auto piece = stream.substr(0, piece_size);
    stream.remove_prefix(piece.size());
    while (const Request* request = parser.next(piece)) {
      const char opcode = static_cast<char>(request->opcode);
      mix({&opcode, 1});
      for (const auto* text : {&request->key, &request->value, &request->desired, &request->user, &request->agent}) {
        mix(*text);
      }
      for (const auto& key : request->keys) mix(key);
      hash ^= request->number + request->first_u32 + request->second_u32 + request->role;
    }
  }
  mix(parser.error());
  return hash;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  {
    std::string stream;
    encode_validate(stream);
    stream += input;
    const auto whole = digest(stream, stream.size());
    require(digest(stream, 1) == whole);
    require(digest(stream, 7) == whole);
    digest(input, 5);  // Without the magic.
  }
  Script script(input);
  const auto kind = script.next_byte();
  World world((kind & 1) != 0, (kind & 2) != 0);
  while (!script.is_over()) {
    const auto what = script.next_byte();
    const std::size_t peer = what % kConnections;
    switch (what >> 4) {
      case 0:
        world.hang_up(peer);
        break;
      case 1:
        world.pass(std::chrono::milliseconds(script.next_byte() * 16));
        break;
      case 2:
        world.begin_round();
        break;
      case 3:
        world.pop_inbox();
        break;
      case 4:
        world.push_order();
        break;
      default:
        world.receive(peer, script.next_chunk(1 + script.next_byte()));
    }
  }
  return 0;
}
