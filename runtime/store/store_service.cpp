#include "runtime/store/store_service.hpp"

#include <algorithm>

namespace tensorplay::store {

namespace {

bool is_workers_key(std::string_view key) {
  return key.starts_with('/') || key == "init/";
}

bool is_extension(Opcode opcode) {
  return opcode >= Opcode::kHello;
}

bool is_agents(Opcode opcode) {
  return opcode >= Opcode::kMailPush;
}

/// Whether this is the question by which our own clients tell our server from others.
bool is_probe(const Request& request) {
  return request.opcode == Opcode::kCheck && request.keys.size() == 1 && request.keys.front() == kExtensionProbeKey;
}

}  // namespace

StoreService::StoreService(ServiceOptions options) : options_(std::move(options)) {}

void StoreService::opened(Session& session) {
  session.round = round_;
  sessions_[session.id] = &session;
}

void StoreService::closed(Session& session, TimePoint now) {
  sessions_.erase(session.id);
  if (session.is_dirty) std::erase(dirty_, &session);
  mailboxes_.cancel(session.id);
  wills_.closed(session.id, now);
  keys_.cancel(session.id, releases_);
  deliver_releases();
}

std::optional<std::string> StoreService::handle(Session& session, Request& request, TimePoint now,
                                                std::int64_t unix_micros) {
  if (session.output.size() > kMaxUnsentBytes) {
    return "it asks for more while it has not read " + std::to_string(session.output.size()) + " bytes of replies";
  }
  if (request.opcode == Opcode::kCancelWait) {
    cancel_wait(session);
    session.output.put_u8(kWaitCanceled);
    mark_dirty(session);
    return std::nullopt;
  }
  // Replies have no ids: one that overtook the wait's would be taken for it.
  if (session.is_waiting) return "it sent a request while it waits for a reply";

  switch (request.opcode) {
    case Opcode::kPing:
      session.output.put_u32(static_cast<std::uint32_t>(request.number));
      mark_dirty(session);
      return std::nullopt;
    case Opcode::kHello:
      return handle_hello(session, request);
    case Opcode::kProve:
      return handle_prove(session, request);
    default:
      break;
  }
  if (is_extension(request.opcode) && !session.said_hello) return "it uses an extension without a hello";
  if (is_agents(request.opcode)) return handle_agent(session, request, now, unix_micros);
  if (is_probe(request)) {
    session.output.put_u8(kReady);
    mark_dirty(session);
    return std::nullopt;
  }
  return handle_worker(session, request, now);
}

StoreService::Refusal StoreService::handle_worker(Session& session, Request& request, TimePoint now) {
  if (session.round != round_) return "it belongs to an earlier round";
  if (session.is_outside_round) return "its host is not in this round";
  if (auto refusal = check_keys(request)) return refusal;
  session.used_workers_table = true;
  if (!first_use_) first_use_ = now;
  Refusal refusal;
  switch (request.opcode) {
    case Opcode::kWait:
      refusal = handle_wait(session, request, WaitKind::kKeys);
      break;
    case Opcode::kGetWait:
      if (const auto value = keys_.get(request.key)) {  // The common case, without a waiter.
        session.output.put_u8(kStopWaiting);
        session.output.put_value(value);
        mark_dirty(session);
        return std::nullopt;
      }
      request.keys.assign(1, std::move(request.key));
      refusal = handle_wait(session, request, WaitKind::kGet);
      break;
    case Opcode::kMultiGetWait:
      refusal = handle_wait(session, request, WaitKind::kMultiGet);
      break;
    case Opcode::kQueuePopWait:
      request.keys.assign(1, std::move(request.key));
      refusal = handle_wait(session, request, WaitKind::kQueuePop);
      break;
    case Opcode::kBarrier:
      session.is_waiting = true;
      if (!keys_.arrive(session.id, std::move(request.key), static_cast<std::int64_t>(request.number), releases_)) {
        session.is_waiting = false;
        refusal = "a barrier's key holds something that is not a number";
      }
      break;
    case Opcode::kQueuePush:
    case Opcode::kQueuePop:
    case Opcode::kQueueLen:
      refusal = handle_queues(session, request);
      break;
    default:
      refusal = handle_keys(session, request);
  }
  deliver_releases();
  return refusal;
}

StoreService::Refusal StoreService::handle_keys(Session& session, Request& request) {
  switch (request.opcode) {
    case Opcode::kSet:
      keys_.set(std::move(request.key), std::move(request.value), releases_);
      return std::nullopt;
    case Opcode::kAppend:
      keys_.append(std::move(request.key), std::move(request.value), releases_);
      return std::nullopt;
    case Opcode::kCompareSet:
      session.output.put_value(
          keys_.compare_set(std::move(request.key), std::move(request.value), std::move(request.desired), releases_));
      break;
    case Opcode::kGet:
      session.output.put_value(keys_.get(request.key));
      break;
    case Opcode::kAdd: {
      const auto sum = keys_.add(std::move(request.key), static_cast<std::int64_t>(request.number), releases_);
      if (!sum) return "it adds to something that is not a number, or beyond the range of one";
      session.output.put_i64(*sum);
      break;
    }
    case Opcode::kCheck:
      session.output.put_u8(keys_.check(request.keys) ? kReady : kNotReady);
      break;
    case Opcode::kGetNumKeys:
      session.output.put_i64(static_cast<std::int64_t>(keys_.size()));
      break;
    case Opcode::kDeleteKey:
      session.output.put_i64(keys_.erase(request.key) ? 1 : 0);
      break;
    case Opcode::kMultiGet:
      for (const auto& key : request.keys) session.output.put_value(keys_.get(key));
      break;
    case Opcode::kListKeys:
      session.output.put_i64(static_cast<std::int64_t>(keys_.size()));
      keys_.for_each_key([&](const std::string& key) {
        session.output.put_u64(key.size());
        session.output.put(key);
      });
      break;
    default:
      return "it sent a request that has no place here";
  }
  mark_dirty(session);
  return std::nullopt;
}

StoreService::Refusal StoreService::handle_queues(Session& session, Request& request) {
  switch (request.opcode) {
    case Opcode::kQueuePush:
      keys_.push(std::move(request.key), std::move(request.value), releases_);
      return std::nullopt;
    case Opcode::kQueuePop: {
      const auto popped = keys_.pop(session.id, request.key);
      session.output.put_i64(popped.length_before);
      if (popped.length_before > 0) session.output.put_value(popped.value);
      break;
    }
    default:
      session.output.put_i64(keys_.queue_length(request.key));
  }
  mark_dirty(session);
  return std::nullopt;
}

StoreService::Refusal StoreService::handle_wait(Session& session, Request& request, WaitKind kind) {
  session.is_waiting = true;
  keys_.wait(session.id, kind, std::move(request.keys), releases_);
  return std::nullopt;
}

StoreService::Refusal StoreService::check_keys(const Request& request) const {
  if (!options_.has_agent_table) return std::nullopt;
  const bool has_key = request.opcode != Opcode::kGetNumKeys && request.opcode != Opcode::kListKeys;
  const bool has_list = request.opcode == Opcode::kCheck || request.opcode == Opcode::kWait ||
                        request.opcode == Opcode::kMultiGet || request.opcode == Opcode::kMultiGetWait;
  const bool is_allowed = has_list ? std::all_of(request.keys.begin(), request.keys.end(), is_workers_key)
                                   : !has_key || is_workers_key(request.key);
  if (is_allowed) return std::nullopt;
  return "it uses a key that is no worker's: those begin with a slash";
}

void StoreService::cancel_wait(Session& session) {
  session.is_waiting = false;
  mailboxes_.cancel(session.id);
  keys_.cancel(session.id, releases_);
  deliver_releases();
}

void StoreService::begin_round() {
  keys_.clear();
  ++round_;
  first_use_.reset();
}

void StoreService::push(std::string_view mailbox, std::string value) {
  mailboxes_.push(mailbox, std::move(value), deliveries_);
  deliver_mail();
}

void StoreService::tick(TimePoint now) {
  for (auto& loss : wills_.tick(now)) push_loss(std::move(loss));
}

void StoreService::deliver_releases() {
  for (const auto& release : releases_) {
    Session* session = find(release.waiter);
    if (session == nullptr) continue;
    session->is_waiting = false;
    session->output.put_u8(kStopWaiting);
    if (release.kind == WaitKind::kGet || release.kind == WaitKind::kQueuePop) {
      session->output.put_value(release.value);
    } else if (release.kind == WaitKind::kMultiGet) {
      for (const auto& value : release.values) session->output.put_value(value);
    }
    mark_dirty(*session);
  }
  releases_.clear();
}

void StoreService::deliver_mail() {
  for (const auto& delivery : deliveries_) {
    Session* session = find(delivery.reader);
    if (session == nullptr) continue;
    session->is_waiting = false;
    session->output.put_u8(kStopWaiting);
    session->output.put_u64(delivery.index);
    session->output.put_value(delivery.value);
    mark_dirty(*session);
  }
  deliveries_.clear();
}

void StoreService::mark_dirty(Session& session) {
  if (std::exchange(session.is_dirty, true)) return;
  dirty_.push_back(&session);
}

Session* StoreService::find(std::uint64_t id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second;
}

}  // namespace tensorplay::store
