#pragma once

#include "runtime/store/authenticator.hpp"
#include "runtime/store/wire_codec.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tensorplay::rendezvous {

/// What was found where a store was looked for.
enum class Answer : std::uint8_t {
  kPending,      ///< Not known yet.
  kUnresolved,   ///< The name means nothing.
  kUnreachable,  ///< Refused, no route, nobody there.
  kSilent,       ///< Something accepts and does not answer: a host that is stopped or just starting.
  kStore,        ///< A store of this job; see the epoch.
  kForeign,      ///< A store of another run or user, or of another kind.
  kStranger,     ///< No store at all.
  kRefused,      ///< This job's store, and one of us does not know the secret.
};

struct Finding {
  Answer answer = Answer::kPending;
  std::uint64_t epoch = 0;  ///< Of a store.
  std::string reason;       ///< For people, without the endpoint: "is held by something that is not a store (...)".
};

/// Whom one expects to meet.
struct GreetingOptions {
  std::string run_id;
  std::string user;
  std::uint64_t oldest_epoch = 1;                             ///< A store with an older one is told nothing more.
  std::shared_ptr<const store::Authenticator> authenticator;  ///< Null: no secret.
};

/// The first words with whoever holds a port: is it a store, of this job, and do both know the secret? Asks the two
/// questions that every server understands (ping and check), then says hello: as a client, to whom every store tells
/// its run, user and epoch, then as an agent of that epoch.
/// A core without I/O. Thread rules: none of its own; one user at a time.
class Greeting {
 public:
  Greeting(GreetingOptions options, std::uint32_t ping_nonce);

  /// What is to be sent now; empty when there is nothing.
  std::string take_output() { return std::exchange(output_, {}); }

  void receive(std::string_view bytes);

  /// The peer has closed, or failed for `reason`.
  void peer_closed(const std::string& reason);

  bool is_over() const noexcept { return finding_.answer != Answer::kPending; }

  /// Whether a line of somebody else's protocol has begun: worth waiting a moment for its rest.
  bool is_hearing_a_stranger() const noexcept { return step_ == Step::kStranger && !is_over(); }

  /// Ends it with what is known.
  void give_up(const std::string& reason);

  const Finding& finding() const noexcept { return finding_; }

 private:
  enum class Step : std::uint8_t { kPing, kProbe, kClientHello, kAgentHello, kProof, kStranger };

  bool advance();  ///< Whether something was consumed.
  bool take_ping();
  bool take_probe();
  bool take_hello_reply();
  bool take_proof_reply();
  bool read_hello_reply(store::HelloReply& reply, std::size_t& size) const;
  void judge_client_hello(const store::HelloReply& reply);
  void judge_agent_hello(const store::HelloReply& reply);
  void prove(const store::HelloReply& reply);
  void end(Answer answer, std::string reason);
  void end_stranger();

  GreetingOptions options_;
  std::uint32_t ping_nonce_;
  Step step_ = Step::kPing;
  std::string input_;
  std::string output_;
  store::HelloTranscript transcript_;
  bool is_proving_ = false;  ///< With a proof; else only saying that there is none.
  std::uint64_t epoch_ = 0;
  Finding finding_;
};

}  // namespace tensorplay::rendezvous
