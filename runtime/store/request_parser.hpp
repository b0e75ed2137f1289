#pragma once

#include "runtime/store/wire_codec.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::store {

/// One request as it came off the wire. Which members mean something follows from the opcode; the receiver may move
/// the strings out.
struct Request {
  Opcode opcode = Opcode::kPing;
  std::string key;                ///< Key, queue, mailbox, agent (DECLARE_LOST), run id (HELLO) or nonce (PROVE).
  std::string value;              ///< Payload; `expected` of a COMPARE_SET.
  std::string desired;            ///< Of a COMPARE_SET.
  std::string user;               ///< Of a HELLO.
  std::string agent;              ///< Of a HELLO; the proof of a PROVE.
  std::vector<std::string> keys;  ///< Of the requests on several keys.
  std::uint64_t number = 0;       ///< Delta, world size, nonce, epoch, sequence, index or token: the request's u64.
  std::uint32_t first_u32 = 0;    ///< Version (HELLO), keep-alive in ms (LEAVE_WILL).
  std::uint32_t second_u32 = 0;   ///< Reconnect time in ms (LEAVE_WILL).
  std::uint8_t role = 0;          ///< Of a HELLO.
};

/// Turns the bytes of one connection into requests, however the network has cut them.
///
/// A byte is looked at once: a request that comes in a million pieces costs no more than one that comes whole. Every
/// length is compared with its limit before memory is taken for it, and memory grows with what has arrived, not with
/// what was announced. The first five bytes must be VALIDATE with its magic; the first wrong one is an error.
/// A MULTI_SET is given as one SET after another, as soon as each pair is complete: the protocol applies them one by
/// one anyhow, and nothing of unbounded size needs to be held.
/// A core without I/O. Thread rules: none of its own; one user at a time.
class RequestParser {
 public:
  /// Takes bytes from the front of `data` up to the end of the next request, and returns that request, owned by the
  /// parser and valid until the next call. Null when `data` is used up, or when `error()` is not empty: then the
  /// stream cannot be understood any more, and no call after that returns a request.
  Request* next(std::string_view& data);

  /// Why the stream is broken; empty while it is not.
  const std::string& error() const noexcept { return error_; }

  /// Whether the magic has been seen.
  bool is_validated() const noexcept { return validated_bytes_ == kValidateBytes; }

  /// Whether a request has begun and not ended.
  bool is_within_request() const noexcept { return stage_ != Stage::kOpcode; }

 private:
  enum class Stage : std::uint8_t { kOpcode, kFields };
  enum class PairStage : std::uint8_t { kFresh, kKey, kValue };
  static constexpr std::size_t kValidateBytes = 5;

  bool take_validation(std::string_view& data);
  bool take_opcode(std::string_view& data);
  bool take_field(std::string_view& data);
  bool take_integer(std::string_view& data, std::size_t size);
  bool take_length(std::string_view& data, std::size_t limit, const char* what);
  bool take_string(std::string_view& data, std::string& into, std::size_t limit, const char* what);
  bool take_key_list(std::string_view& data);
  bool take_pair(std::string_view& data);
  bool take_count(std::string_view& data);
  bool fail(std::string why);
  void reset_request();

  Request request_;
  std::string error_;
  const std::uint8_t* field_ = nullptr;  ///< The field now being read, in the opcode's list of fields.
  std::uint64_t integer_ = 0;            ///< The last whole integer.
  std::uint64_t left_ = 0;               ///< Bytes of the current string still to come.
  std::uint64_t items_left_ = 0;         ///< Keys or pairs still to come.
  std::uint64_t key_bytes_ = 0;          ///< Of all keys of the current list.
  Stage stage_ = Stage::kOpcode;
  std::uint8_t validated_bytes_ = 0;
  std::uint8_t integer_bytes_ = 0;  ///< How many bytes of the current integer are in `partial_`.
  bool has_length_ = false;         ///< The current string's length has been read.
  bool has_count_ = false;
  PairStage pair_stage_ = PairStage::kFresh;
  char partial_[8] = {};
};

}  // namespace tensorplay::store
