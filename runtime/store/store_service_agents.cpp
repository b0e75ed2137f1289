// The extensions' half of StoreService: hello, proof, mailboxes, wills.
#include "runtime/store/store_service.hpp"

#include <tuple>

namespace tensorplay::store {
namespace {

const char* name_of(WillTable::Cause cause) {
  switch (cause) {
    case WillTable::Cause::kSilent:
      return "silent";
    case WillTable::Cause::kClosed:
      return "closed";
    case WillTable::Cause::kDeclared:
      break;
  }
  return "declared";
}

}  // namespace

StoreService::Refusal StoreService::handle_hello(Session& session, Request& request) {
  const bool is_agent = request.role == static_cast<std::uint8_t>(Role::kAgent);
  const auto& [run_id, user, epoch] = std::tie(request.key, request.user, request.number);
  HelloReply reply{HelloStatus::kWelcome, kExtensionVersion, options_.run_id, options_.user, options_.epoch, ""};
  // A worker's store client need not know what job it is in; an agent must.
  if (request.first_u32 != kExtensionVersion) {
    reply.status = HelloStatus::kOtherVersion;
  } else if (run_id != options_.run_id && (is_agent || !run_id.empty())) {
    reply.status = HelloStatus::kOtherRun;
  } else if (user != options_.user && (is_agent || !user.empty())) {
    reply.status = HelloStatus::kOtherUser;
  } else if (is_agent && epoch < options_.epoch) {
    reply.status = HelloStatus::kOldEpoch;
  } else if (is_agent && epoch > options_.epoch) {
    reply.status = HelloStatus::kServerIsOld;
    // Whoever does not know the secret cannot depose a host.
    if (options_.on_newer_epoch && !options_.authenticator) options_.on_newer_epoch(epoch);
  } else if (is_agent && options_.authenticator) {
    reply.status = HelloStatus::kProve;
    reply.server_nonce = options_.authenticator->make_nonce();
  }
  session.has_tried_hello = true;
  std::string bytes;
  encode_hello_reply(bytes, reply);
  session.output.put(bytes);
  mark_dirty(session);
  // What an earlier hello of this connection was granted ends with it.
  session.said_hello = false;
  session.challenge.reset();
  if (reply.status == HelloStatus::kProve) {
    session.challenge = std::make_unique<HelloTranscript>(
        HelloTranscript{run_id, user, std::move(request.agent), std::move(reply.server_nonce), ""});
    return std::nullopt;
  }
  if (reply.status != HelloStatus::kWelcome) {
    return "its hello is for another store: run '" + run_id + "', user '" + user + "', epoch " + std::to_string(epoch);
  }
  session.said_hello = true;
  session.role = is_agent ? Role::kAgent : Role::kClient;
  session.agent = std::move(request.agent);
  return std::nullopt;
}

StoreService::Refusal StoreService::handle_prove(Session& session, const Request& request) {
  const std::string& proof = request.agent;
  const auto answer = [&](ProofStatus status, std::string_view server_proof = {}) {
    std::string bytes;
    encode_proof_reply(bytes, status, server_proof);
    session.output.put(bytes);
    mark_dirty(session);
  };
  if (!options_.authenticator && session.said_hello && session.role == Role::kAgent) {
    answer(ProofStatus::kNotAsked);
    return "this job has no secret and the agent has one; give all nodes the same --rdzv-token-file";
  }
  const auto transcript = std::move(session.challenge);  // One try a hello.
  if (!transcript) return "it proves what nobody asked for";
  if (proof.empty()) {
    answer(ProofStatus::kNoProof);
    return "the agent has no secret and this job has one; give all nodes the same --rdzv-token-file";
  }
  transcript->client_nonce = request.key;
  const bool is_right = request.key.size() == kNonceBytes &&
                        options_.authenticator->is_equal(proof, options_.authenticator->client_proof(*transcript));
  if (!is_right) {
    answer(ProofStatus::kWrong);
    return "the agent's secret is not this job's; give all nodes the same --rdzv-token-file";
  }
  answer(ProofStatus::kProven, options_.authenticator->server_proof(*transcript));
  session.said_hello = true;
  session.role = Role::kAgent;
  session.agent = transcript->agent;
  return std::nullopt;
}

StoreService::Refusal StoreService::handle_agent(Session& session, Request& request, TimePoint now,
                                                 std::int64_t unix_micros) {
  if (!options_.has_agent_table) return "it asks for the agents' table, which is not here";
  if (session.role != Role::kAgent || session.agent.empty()) return "it asks for the agents' table and is no agent";
  auto& output = session.output;
  switch (request.opcode) {
    case Opcode::kMailPush: {
      if (request.key != kInbox) return "it pushes to mailbox '" + request.key + "'; only the inbox is open to agents";
      request.value.append("\nfrom ").append(session.peer);
      const bool is_new =
          mailboxes_.push_once(kInbox, session.agent, request.number, std::move(request.value), deliveries_);
      deliver_mail();
      output.put_u8(static_cast<std::uint8_t>(is_new ? MailPushStatus::kKept : MailPushStatus::kHadItAlready));
      break;
    }
    case Opcode::kMailRead: {
      if (request.key == kInbox) return "it reads the inbox, which is the leader's";
      session.is_waiting = true;
      const bool is_own = request.key == orders_mailbox(session.agent);
      mailboxes_.read(session.id, request.key, request.number, is_own, deliveries_);
      deliver_mail();
      return std::nullopt;
    }
    case Opcode::kLeaveWill: {
      using std::chrono::milliseconds;
      const auto outcome = wills_.leave({session.agent, request.number, milliseconds(request.first_u32),
                                         milliseconds(request.second_u32), std::move(request.value)},
                                        session.id, now);
      output.put_u8(static_cast<std::uint8_t>(outcome));
      break;
    }
    case Opcode::kKeepAlive: {
      const bool is_held = wills_.heard(session.id, now);
      output.put_u8(static_cast<std::uint8_t>(is_held ? WillStatus::kHeld : WillStatus::kLost));
      output.put_i64(unix_micros);
      break;
    }
    case Opcode::kCancelWill:
      output.put_u8(static_cast<std::uint8_t>(wills_.cancel(session.id) ? WillStatus::kHeld : WillStatus::kLost));
      break;
    default: {  // kDeclareLost
      auto loss = wills_.declare_lost(request.key, request.number, now);
      output.put_u8(static_cast<std::uint8_t>(loss ? DeclareLostStatus::kFired : DeclareLostStatus::kUnknown));
      if (loss) push_loss(std::move(*loss));
      break;
    }
  }
  mark_dirty(session);
  return std::nullopt;
}

void StoreService::push_loss(WillTable::Loss loss) {
  loss.message.append("\nlost ").append(name_of(loss.cause)).append(" ").append(std::to_string(loss.silence.count()));
  push(kInbox, std::move(loss.message));
}

}  // namespace tensorplay::store
