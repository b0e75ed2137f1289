/// The TCPStore protocol's words: opcodes, limits, and how requests and replies are laid out as bytes.
///
/// One connection carries requests in order, without ids or lengths around them: an opcode byte, then its arguments.
/// Integers are little endian; a string is a u64 length and its bytes. docs/store-protocol.md is the reference.
/// A core without I/O. Thread rules: free functions on the caller's buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::store {

/// The first byte of every request. 0 to 18 are PyTorch's; those from 0xE0 are ours, spoken after a hello only.
enum class Opcode : std::uint8_t {
  kValidate = 0,
  kSet = 1,
  kCompareSet = 2,
  kGet = 3,
  kAdd = 4,
  kCheck = 5,
  kWait = 6,
  kGetNumKeys = 7,
  kDeleteKey = 8,
  kAppend = 9,
  kMultiGet = 10,
  kMultiSet = 11,
  kCancelWait = 12,
  kPing = 13,
  kQueuePush = 14,
  kQueuePop = 15,
  kQueueLen = 16,
  kListKeys = 17,
  kBarrier = 18,

  kHello = 0xE0,         ///< Opens the extensions.
  kGetWait = 0xE1,       ///< Waits for a key and gives its value: `get` in one round trip.
  kMultiGetWait = 0xE2,  ///< Waits until all keys are there at once and gives their values.
  kQueuePopWait = 0xE3,  ///< Waits for a queue's next value and takes it; no other consumer can come between.
  kMailPush = 0xE4,      ///< Agents' table: appends to the leader's inbox, once however often it is sent.
  kMailRead = 0xE5,      ///< Agents' table: waits for a mailbox's entry.
  kLeaveWill = 0xE6,     ///< What the server shall push into the inbox should this agent be lost.
  kKeepAlive = 0xE7,     ///< This agent is alive.
  kCancelWill = 0xE8,    ///< This agent leaves of its own accord.
  kDeclareLost = 0xE9,   ///< A guardian's word that its agent is dead.
  kProve = 0xEA,         ///< An agent's proof that it knows the job's secret, when its hello was answered by kProve.
};

inline constexpr std::uint32_t kValidateMagic = 0x3C85F7CE;
inline constexpr std::uint8_t kReady = 0;
inline constexpr std::uint8_t kNotReady = 1;
inline constexpr std::uint8_t kStopWaiting = 0;
inline constexpr std::uint8_t kWaitCanceled = 1;

// PyTorch's limits: what exceeds them closes the connection before memory is taken.
inline constexpr std::size_t kMaxKeyBytes = 8192;
inline constexpr std::size_t kMaxPayloadBytes = 8 << 20;
inline constexpr std::size_t kMaxKeyCount = 131'072;
// Ours: all keys of one request together.
inline constexpr std::size_t kMaxKeyListBytes = 64 << 20;

/// A CHECK for this key alone is READY on a server with the extensions and NOT_READY on any other: no client can have
/// set it, since TCPStore clients put a slash in front of every key.
inline constexpr std::string_view kExtensionProbeKey = "tp/extensions/1";
inline constexpr std::uint32_t kExtensionVersion = 1;
inline constexpr std::size_t kNonceBytes = 32;

/// The one mailbox that the network may push to.
inline constexpr std::string_view kInbox = "inbox";

/// The mailbox from which an agent reads its orders. Only the process that hosts the server writes to it.
std::string orders_mailbox(std::string_view agent);

enum class Role : std::uint8_t { kClient = 0, kAgent = 1 };

/// What a server answers to a hello. Anything but kWelcome and kProve ends the connection.
enum class HelloStatus : std::uint8_t {
  kWelcome = 0,
  kOtherVersion = 1,
  kOtherRun = 2,
  kOtherUser = 3,
  kOldEpoch = 4,     ///< The peer's epoch is behind the server's.
  kServerIsOld = 5,  ///< The server's epoch is behind the peer's: a later host has taken over from it.
  kProve = 6,        ///< All fits, and a PROVE must follow: the job has a secret.
};

/// What a server answers to a PROVE. Anything but kProven ends the connection.
enum class ProofStatus : std::uint8_t {
  kProven = 0,
  kNoProof = 1,   ///< The peer gave none: it has no secret.
  kWrong = 2,     ///< Its secret is another.
  kNotAsked = 3,  ///< This server has no secret.
};

enum class MailPushStatus : std::uint8_t { kKept = 0, kHadItAlready = 1 };
enum class WillStatus : std::uint8_t { kHeld = 0, kResumed = 1, kOwnedByAnother = 2, kLost = 3 };
enum class DeclareLostStatus : std::uint8_t { kFired = 0, kUnknown = 1 };

struct Hello {
  std::uint32_t version = kExtensionVersion;
  Role role = Role::kClient;
  std::string run_id;  ///< Empty for a client that does not care.
  std::string user;    ///< As run_id.
  std::string agent;   ///< The agent's id; empty for clients.
  std::uint64_t epoch = 0;
};

struct HelloReply {
  HelloStatus status = HelloStatus::kWelcome;
  std::uint32_t version = kExtensionVersion;
  std::string run_id;
  std::string user;
  std::uint64_t epoch = 0;
  std::string server_nonce;  ///< On the wire with kProve only.
};

// ---- Primitives: each appends to `out`.

void put_u8(std::string& out, std::uint8_t value);
void put_u32(std::string& out, std::uint32_t value);
void put_u64(std::string& out, std::uint64_t value);
void put_i64(std::string& out, std::int64_t value);
void put_bytes(std::string& out, std::string_view bytes);

std::uint32_t get_u32(const char* bytes) noexcept;  ///< Of 4 bytes.
std::uint64_t get_u64(const char* bytes) noexcept;  ///< Of 8 bytes.

// ---- Requests: each appends one whole request to `out`. Keys are as on the wire, so with their leading slash. Limits
// are the caller's to keep; a server closes the connection where they are not.

void encode_validate(std::string& out);
void encode_set(std::string& out, std::string_view key, std::string_view value);
void encode_compare_set(std::string& out, std::string_view key, std::string_view expected, std::string_view desired);
void encode_get(std::string& out, std::string_view key);
void encode_add(std::string& out, std::string_view key, std::int64_t delta);
void encode_check(std::string& out, const std::vector<std::string>& keys);
void encode_wait(std::string& out, const std::vector<std::string>& keys);
void encode_get_num_keys(std::string& out);
void encode_delete_key(std::string& out, std::string_view key);
void encode_append(std::string& out, std::string_view key, std::string_view value);
void encode_multi_get(std::string& out, const std::vector<std::string>& keys);
/// Throws InvalidArgument when the lengths differ.
void encode_multi_set(std::string& out, const std::vector<std::string>& keys, const std::vector<std::string>& values);
void encode_cancel_wait(std::string& out);
void encode_ping(std::string& out, std::uint32_t nonce);
void encode_queue_push(std::string& out, std::string_view key, std::string_view value);
void encode_queue_pop(std::string& out, std::string_view key);
void encode_queue_len(std::string& out, std::string_view key);
void encode_list_keys(std::string& out);
void encode_barrier(std::string& out, std::string_view key, std::int64_t world_size);

void encode_hello(std::string& out, const Hello& hello);
void encode_get_wait(std::string& out, std::string_view key);
void encode_multi_get_wait(std::string& out, const std::vector<std::string>& keys);
void encode_queue_pop_wait(std::string& out, std::string_view key);
void encode_mail_push(std::string& out, std::string_view mailbox, std::uint64_t sequence, std::string_view value);
void encode_mail_read(std::string& out, std::string_view mailbox, std::uint64_t first);
void encode_leave_will(std::string& out, std::uint64_t token, std::uint32_t keep_alive_ms, std::uint32_t reconnect_ms,
                       std::string_view message);
void encode_keep_alive(std::string& out);
void encode_cancel_will(std::string& out);
void encode_declare_lost(std::string& out, std::string_view agent, std::uint64_t token);
/// Both empty: the peer has no secret, and says so that the server can tell its people.
void encode_prove(std::string& out, std::string_view client_nonce, std::string_view proof);

/// The reply to a hello: u8 status, u32 version, string run id, string user, u64 epoch; with kProve, string nonce.
void encode_hello_reply(std::string& out, const HelloReply& reply);

/// The reply to a PROVE: u8 status, string proof (empty unless kProven).
void encode_proof_reply(std::string& out, ProofStatus status, std::string_view server_proof);

}  // namespace tensorplay::store
