#include "runtime/store/wire_codec.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <bit>
#include <cstring>

namespace tensorplay::store {

static_assert(std::endian::native == std::endian::little, "the protocol is little endian and values are copied as is");

namespace {

template <typename Integer>
void put_integer(std::string& out, Integer value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void put_opcode(std::string& out, Opcode opcode) {
  put_u8(out, static_cast<std::uint8_t>(opcode));
}

void put_keyed(std::string& out, Opcode opcode, std::string_view key) {
  put_opcode(out, opcode);
  put_bytes(out, key);
}

void put_keyed(std::string& out, Opcode opcode, std::string_view key, std::string_view value) {
  put_keyed(out, opcode, key);
  put_bytes(out, value);
}

void put_key_list(std::string& out, Opcode opcode, const std::vector<std::string>& keys) {
  put_opcode(out, opcode);
  put_u64(out, keys.size());
  for (const auto& key : keys) put_bytes(out, key);
}

}  // namespace

std::string orders_mailbox(std::string_view agent) {
  return std::string("orders/").append(agent);
}

void put_u8(std::string& out, std::uint8_t value) {
  out.push_back(static_cast<char>(value));
}
void put_u32(std::string& out, std::uint32_t value) {
  put_integer(out, value);
}
void put_u64(std::string& out, std::uint64_t value) {
  put_integer(out, value);
}
void put_i64(std::string& out, std::int64_t value) {
  put_integer(out, value);
}

void put_bytes(std::string& out, std::string_view bytes) {
  put_u64(out, bytes.size());
  out.append(bytes);
}

std::uint32_t get_u32(const char* bytes) noexcept {
  std::uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::uint64_t get_u64(const char* bytes) noexcept {
  std::uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

void encode_validate(std::string& out) {
  put_opcode(out, Opcode::kValidate);
  put_u32(out, kValidateMagic);
}

void encode_set(std::string& out, std::string_view key, std::string_view value) {
  put_keyed(out, Opcode::kSet, key, value);
}

void encode_compare_set(std::string& out, std::string_view key, std::string_view expected, std::string_view desired) {
  put_keyed(out, Opcode::kCompareSet, key, expected);
  put_bytes(out, desired);
}

void encode_get(std::string& out, std::string_view key) {
  put_keyed(out, Opcode::kGet, key);
}

void encode_add(std::string& out, std::string_view key, std::int64_t delta) {
  put_keyed(out, Opcode::kAdd, key);
  put_i64(out, delta);
}

void encode_check(std::string& out, const std::vector<std::string>& keys) {
  put_key_list(out, Opcode::kCheck, keys);
}
void encode_wait(std::string& out, const std::vector<std::string>& keys) {
  put_key_list(out, Opcode::kWait, keys);
}
void encode_get_num_keys(std::string& out) {
  put_opcode(out, Opcode::kGetNumKeys);
}
void encode_delete_key(std::string& out, std::string_view key) {
  put_keyed(out, Opcode::kDeleteKey, key);
}

void encode_append(std::string& out, std::string_view key, std::string_view value) {
  put_keyed(out, Opcode::kAppend, key, value);
}

void encode_multi_get(std::string& out, const std::vector<std::string>& keys) {
  put_key_list(out, Opcode::kMultiGet, keys);
}

void encode_multi_set(std::string& out, const std::vector<std::string>& keys, const std::vector<std::string>& values) {
  if (keys.size() != values.size()) {
    throw distributed::InvalidArgument("multi_set: " + std::to_string(keys.size()) + " keys and " +
                                       std::to_string(values.size()) + " values");
  }
  put_opcode(out, Opcode::kMultiSet);
  put_u64(out, keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    put_bytes(out, keys[i]);
    put_bytes(out, values[i]);
  }
}

void encode_cancel_wait(std::string& out) {
  put_opcode(out, Opcode::kCancelWait);
}

void encode_ping(std::string& out, std::uint32_t nonce) {
  put_opcode(out, Opcode::kPing);
  put_u32(out, nonce);
}

void encode_queue_push(std::string& out, std::string_view key, std::string_view value) {
  put_keyed(out, Opcode::kQueuePush, key, value);
}

void encode_queue_pop(std::string& out, std::string_view key) {
  put_keyed(out, Opcode::kQueuePop, key);
}
void encode_queue_len(std::string& out, std::string_view key) {
  put_keyed(out, Opcode::kQueueLen, key);
}
void encode_list_keys(std::string& out) {
  put_opcode(out, Opcode::kListKeys);
}

void encode_barrier(std::string& out, std::string_view key, std::int64_t world_size) {
  put_keyed(out, Opcode::kBarrier, key);
  put_i64(out, world_size);
}

void encode_hello(std::string& out, const Hello& hello) {
  put_opcode(out, Opcode::kHello);
  put_u32(out, hello.version);
  put_u8(out, static_cast<std::uint8_t>(hello.role));
  put_bytes(out, hello.run_id);
  put_bytes(out, hello.user);
  put_bytes(out, hello.agent);
  put_u64(out, hello.epoch);
}

void encode_get_wait(std::string& out, std::string_view key) {
  put_keyed(out, Opcode::kGetWait, key);
}

void encode_multi_get_wait(std::string& out, const std::vector<std::string>& keys) {
  put_key_list(out, Opcode::kMultiGetWait, keys);
}

void encode_queue_pop_wait(std::string& out, std::string_view key) {
  put_keyed(out, Opcode::kQueuePopWait, key);
}

void encode_mail_push(std::string& out, std::string_view mailbox, std::uint64_t sequence, std::string_view value) {
  put_keyed(out, Opcode::kMailPush, mailbox);
  put_u64(out, sequence);
  put_bytes(out, value);
}

void encode_mail_read(std::string& out, std::string_view mailbox, std::uint64_t first) {
  put_keyed(out, Opcode::kMailRead, mailbox);
  put_u64(out, first);
}

void encode_leave_will(std::string& out, std::uint64_t token, std::uint32_t keep_alive_ms, std::uint32_t reconnect_ms,
                       std::string_view message) {
  put_opcode(out, Opcode::kLeaveWill);
  put_u64(out, token);
  put_u32(out, keep_alive_ms);
  put_u32(out, reconnect_ms);
  put_bytes(out, message);
}

void encode_keep_alive(std::string& out) {
  put_opcode(out, Opcode::kKeepAlive);
}
void encode_cancel_will(std::string& out) {
  put_opcode(out, Opcode::kCancelWill);
}

void encode_declare_lost(std::string& out, std::string_view agent, std::uint64_t token) {
  put_keyed(out, Opcode::kDeclareLost, agent);
  put_u64(out, token);
}

void encode_hello_reply(std::string& out, const HelloReply& reply) {
  put_u8(out, static_cast<std::uint8_t>(reply.status));
  put_u32(out, reply.version);
  put_bytes(out, reply.run_id);
  put_bytes(out, reply.user);
  put_u64(out, reply.epoch);
  if (reply.status == HelloStatus::kProve) put_bytes(out, reply.server_nonce);
}

void encode_prove(std::string& out, std::string_view client_nonce, std::string_view proof) {
  put_keyed(out, Opcode::kProve, client_nonce);
  put_bytes(out, proof);
}

void encode_proof_reply(std::string& out, ProofStatus status, std::string_view server_proof) {
  put_u8(out, static_cast<std::uint8_t>(status));
  put_bytes(out, server_proof);
}

}  // namespace tensorplay::store
