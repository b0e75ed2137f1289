// The extensions' half of StoreService: hello, mailboxes, wills.
#include "runtime/store/store_service.hpp"

#include <tuple>

namespace tensorplay::store {

StoreService::Refusal StoreService::handle_hello(Session& session, Request& request) {
  const bool is_agent = request.role == static_cast<std::uint8_t>(Role::kAgent);
  const auto& [run_id, user, epoch] = std::tie(request.key, request.user, request.number);
  HelloReply reply{HelloStatus::kWelcome, kExtensionVersion, options_.run_id, options_.user, options_.epoch};
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
  }
  std::string bytes;
  encode_hello_reply(bytes, reply);
  session.output.put(bytes);
  mark_dirty(session);
  if (reply.status != HelloStatus::kWelcome) {
    return "its hello is for another store: run '" + run_id + "', user '" + user + "', epoch " + std::to_string(epoch);
  }
  session.said_hello = true;
  session.role = is_agent ? Role::kAgent : Role::kClient;
  session.agent = std::move(request.agent);
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
      auto message = wills_.declare_lost(request.key, request.number);
      if (message) push(kInbox, std::move(*message));
      output.put_u8(static_cast<std::uint8_t>(message ? DeclareLostStatus::kFired : DeclareLostStatus::kUnknown));
      break;
    }
  }
  mark_dirty(session);
  return std::nullopt;
}

}  // namespace tensorplay::store
