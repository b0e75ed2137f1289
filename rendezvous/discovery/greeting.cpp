#include "rendezvous/discovery/greeting.hpp"

#include <algorithm>
#include <utility>

namespace tensorplay::rendezvous {

using store::HelloReply;
using store::HelloStatus;
using store::ProofStatus;

namespace {

constexpr std::size_t kMaxInput = 64 << 10;
constexpr std::size_t kShownBytes = 40;

std::uint64_t length_at(const std::string& bytes, std::size_t at) {
  return store::get_u64(bytes.data() + at);
}

/// The first line of what a stranger says, if people can read it.
std::string first_line(std::string_view text) {
  text = text.substr(0, std::min(text.find_first_of("\r\n"), kShownBytes));
  const bool is_text =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return is_text ? std::string(text) : std::string();
}

}  // namespace

Greeting::Greeting(GreetingOptions options, std::uint32_t ping_nonce)
    : options_(std::move(options)), ping_nonce_(ping_nonce) {
  // One segment: torch's server must not see the first byte without the four that follow it.
  store::encode_validate(output_);
  store::encode_ping(output_, ping_nonce_);
  store::encode_check(output_, {std::string(store::kExtensionProbeKey)});
}

void Greeting::receive(std::string_view bytes) {
  if (is_over()) return;
  input_ += bytes;
  while (!is_over() && advance()) {
  }
  if (!is_over() && input_.size() > kMaxInput) end_stranger();
}

void Greeting::peer_closed(const std::string& reason) {
  if (is_over()) return;
  if (step_ == Step::kStranger || !input_.empty()) return end_stranger();
  end(Answer::kUnreachable, "closes the connection: " + reason);
}

void Greeting::give_up(const std::string& reason) {
  if (is_over()) return;
  if (step_ == Step::kStranger) return end_stranger();
  end(Answer::kSilent, reason);
}

bool Greeting::advance() {
  switch (step_) {
    case Step::kPing:
      return take_ping();
    case Step::kProbe:
      return take_probe();
    case Step::kClientHello:
    case Step::kAgentHello:
      return take_hello_reply();
    case Step::kProof:
      return take_proof_reply();
    case Step::kStranger:
      if (input_.find('\n') != std::string::npos || input_.size() > kShownBytes) end_stranger();
      break;
  }
  return false;
}

bool Greeting::take_ping() {
  if (input_.size() < 4) return false;
  if (store::get_u32(input_.data()) != ping_nonce_) {
    step_ = Step::kStranger;
    return true;
  }
  input_.erase(0, 4);
  step_ = Step::kProbe;
  return true;
}

bool Greeting::take_probe() {
  if (input_.empty()) return false;
  const auto answer = static_cast<std::uint8_t>(input_.front());
  input_.erase(0, 1);
  if (answer == store::kNotReady) {
    end(Answer::kForeign, "is held by a store that is not tprun's (torchrun's?); choose another port");
    return true;
  }
  if (answer != store::kReady) {
    end(Answer::kStranger, "is held by something that is not a store; choose another port");
    return true;
  }
  store::encode_hello(output_, {store::kExtensionVersion, store::Role::kClient, options_.run_id, options_.user, "", 0});
  step_ = Step::kClientHello;
  return true;
}

bool Greeting::take_hello_reply() {
  HelloReply reply;
  std::size_t size = 0;
  if (!read_hello_reply(reply, size)) return false;
  input_.erase(0, size);
  if (step_ == Step::kClientHello) {
    judge_client_hello(reply);
  } else {
    judge_agent_hello(reply);
  }
  return true;
}

/// Whether a whole reply is there: u8 status, u32 version, string run id, string user, u64 epoch [, string nonce].
bool Greeting::read_hello_reply(HelloReply& reply, std::size_t& size) const {
  std::size_t at = 0;
  const auto has = [&](std::size_t bytes) { return input_.size() - at >= bytes; };
  const auto take_string = [&](std::string& into) {
    if (!has(8)) return false;
    const auto length = length_at(input_, at);
    if (length > kMaxInput || !has(8 + length)) return false;  // Too long a one ends at kMaxInput.
    into = input_.substr(at + 8, length);
    at += 8 + length;
    return true;
  };
  if (!has(5)) return false;
  reply.status = static_cast<HelloStatus>(input_[0]);
  reply.version = store::get_u32(input_.data() + 1);
  at = 5;
  if (!take_string(reply.run_id) || !take_string(reply.user) || !has(8)) return false;
  reply.epoch = length_at(input_, at);
  at += 8;
  if (reply.status == HelloStatus::kProve && !take_string(reply.server_nonce)) return false;
  size = at;
  return true;
}

void Greeting::judge_client_hello(const HelloReply& reply) {
  epoch_ = reply.epoch;
  switch (reply.status) {
    case HelloStatus::kOtherVersion:
      return end(Answer::kForeign, "is held by a store of another tprun (protocol " + std::to_string(reply.version) +
                                       ", this one's is " + std::to_string(store::kExtensionVersion) +
                                       "); run the same version on all nodes");
    case HelloStatus::kOtherRun:
      return end(Answer::kForeign, "is held by the store of run '" + reply.run_id + "' of user " + reply.user +
                                       ", this is run '" + options_.run_id + "'; choose another port or --rdzv-id");
    case HelloStatus::kOtherUser:
      return end(Answer::kForeign, "is held by the store of user " + reply.user + ", this is user " + options_.user +
                                       "; choose another port");
    default:
      break;
  }
  if (reply.epoch == 0) {
    return end(Answer::kForeign,
               "is held by a store that takes no agents: a job on one node, or tpstore; choose another port");
  }
  if (reply.epoch < options_.oldest_epoch) return end(Answer::kStore, "");
  transcript_ = {options_.run_id, options_.user, "", "", ""};
  store::encode_hello(output_, {store::kExtensionVersion, store::Role::kAgent, options_.run_id, options_.user,
                                transcript_.agent, reply.epoch});
  step_ = Step::kAgentHello;
}

void Greeting::judge_agent_hello(const HelloReply& reply) {
  switch (reply.status) {
    case HelloStatus::kWelcome:
      if (!options_.authenticator) return end(Answer::kStore, "");
      // It wants no proof. Say that we have one, so that its people learn of it too.
      store::encode_prove(output_, "", "");
      step_ = Step::kProof;
      return;
    case HelloStatus::kProve:
      return prove(reply);
    default:  // Its epoch has changed since the last answer: look again.
      return end(Answer::kSilent, "is changing hands");
  }
}

void Greeting::prove(const HelloReply& reply) {
  step_ = Step::kProof;
  if (!options_.authenticator) return store::encode_prove(output_, "", "");
  is_proving_ = true;
  transcript_.server_nonce = reply.server_nonce;
  transcript_.client_nonce = options_.authenticator->make_nonce();
  store::encode_prove(output_, transcript_.client_nonce, options_.authenticator->client_proof(transcript_));
}

bool Greeting::take_proof_reply() {
  if (input_.size() < 9 || input_.size() - 9 < length_at(input_, 1)) return false;
  const auto status = static_cast<ProofStatus>(input_[0]);
  const std::string proof = input_.substr(9, length_at(input_, 1));
  input_.clear();
  switch (status) {
    case ProofStatus::kProven:
      if (is_proving_ && options_.authenticator->is_equal(proof, options_.authenticator->server_proof(transcript_))) {
        end(Answer::kStore, "");
      } else {
        end(Answer::kRefused, "does not know the job's secret; give all nodes the same --rdzv-token-file");
      }
      break;
    case ProofStatus::kNoProof:
      end(Answer::kRefused, "wants a proof of the job's secret; give this node --rdzv-token-file too");
      break;
    case ProofStatus::kNotAsked:
      end(Answer::kRefused, "has no secret and this node has one; give all nodes the same --rdzv-token-file");
      break;
    default:
      end(Answer::kRefused, "has another secret than this node; give all nodes the same --rdzv-token-file");
  }
  return true;
}

void Greeting::end(Answer answer, std::string reason) {
  finding_ = {answer, epoch_, std::move(reason)};
}

void Greeting::end_stranger() {
  const std::string said = first_line(input_);
  end(Answer::kStranger, "is held by something that is not a store" +
                             (said.empty() ? std::string() : " (it sent \"" + said + "\")") + "; choose another port");
}

}  // namespace tensorplay::rendezvous
