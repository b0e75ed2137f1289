#include "runtime/store/request_parser.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tensorplay::store {

namespace {

enum Field : std::uint8_t {
  kEnd,
  kKey,
  kValue,
  kDesired,
  kUser,
  kAgent,
  kKeyList,
  kPairs,
  kU64,
  kNonce,
  kFirstU32,
  kSecondU32,
  kRole,
  kUnknown,
};

using FieldList = std::array<std::uint8_t, 7>;

/// What follows an opcode, in order.
constexpr FieldList fields_of(std::uint8_t opcode) {
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::kSet:
    case Opcode::kAppend:
    case Opcode::kQueuePush:
      return {kKey, kValue};
    case Opcode::kCompareSet:
      return {kKey, kValue, kDesired};
    case Opcode::kGet:
    case Opcode::kDeleteKey:
    case Opcode::kQueuePop:
    case Opcode::kQueueLen:
    case Opcode::kGetWait:
    case Opcode::kQueuePopWait:
      return {kKey};
    case Opcode::kAdd:
    case Opcode::kBarrier:
    case Opcode::kMailRead:
    case Opcode::kDeclareLost:
      return {kKey, kU64};
    case Opcode::kCheck:
    case Opcode::kWait:
    case Opcode::kMultiGet:
    case Opcode::kMultiGetWait:
      return {kKeyList};
    case Opcode::kMultiSet:
      return {kPairs};
    case Opcode::kGetNumKeys:
    case Opcode::kCancelWait:
    case Opcode::kListKeys:
    case Opcode::kKeepAlive:
    case Opcode::kCancelWill:
      return {};
    case Opcode::kPing:
      return {kNonce};
    case Opcode::kHello:
      return {kFirstU32, kRole, kKey, kUser, kAgent, kU64};
    case Opcode::kMailPush:
      return {kKey, kU64, kValue};
    case Opcode::kProve:
      return {kKey, kAgent};
    case Opcode::kLeaveWill:
      return {kU64, kFirstU32, kSecondU32, kValue};
    case Opcode::kValidate:
      break;
  }
  return {kUnknown};
}

constexpr auto kFields = [] {
  std::array<FieldList, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = fields_of(static_cast<std::uint8_t>(i));
  return table;
}();

/// Empties a string and gives back what a large one held: ten thousand quiet connections must not keep it.
void clear(std::string& text) {
  if (text.capacity() > 512) {
    text = std::string();
  } else {
    text.clear();
  }
}

}  // namespace

Request* RequestParser::next(std::string_view& data) {
  if (!error_.empty()) return nullptr;
  if (!is_validated() && !take_validation(data)) return nullptr;
  while (true) {
    if (stage_ == Stage::kOpcode && !take_opcode(data)) return nullptr;
    if (*field_ == kPairs) {
      if (!has_count_ && !take_count(data)) return nullptr;
      const bool is_empty = items_left_ == 0;  // A MULTI_SET of nothing is no request.
      if (!is_empty && !take_pair(data)) return nullptr;
      if (items_left_ == 0) {
        has_count_ = false;
        stage_ = Stage::kOpcode;
      }
      if (is_empty) continue;
      return &request_;
    }
    while (*field_ != kEnd) {
      if (!take_field(data)) return nullptr;
      ++field_;
    }
    stage_ = Stage::kOpcode;
    return &request_;
  }
}

bool RequestParser::take_validation(std::string_view& data) {
  char expected[kValidateBytes] = {static_cast<char>(Opcode::kValidate)};
  std::memcpy(expected + 1, &kValidateMagic, sizeof kValidateMagic);
  while (!is_validated()) {
    if (data.empty()) return false;
    if (data.front() != expected[validated_bytes_]) return fail("it does not begin as a TCPStore client does");
    data.remove_prefix(1);
    ++validated_bytes_;
  }
  return true;
}

bool RequestParser::take_opcode(std::string_view& data) {
  if (data.empty()) return false;
  const auto opcode = static_cast<std::uint8_t>(data.front());
  const auto* fields = kFields[opcode].data();
  if (*fields == kUnknown) return fail("opcode " + std::to_string(opcode) + " is unknown");
  data.remove_prefix(1);
  reset_request();
  request_.opcode = static_cast<Opcode>(opcode);
  field_ = fields;
  stage_ = Stage::kFields;
  return true;
}

bool RequestParser::take_field(std::string_view& data) {
  switch (*field_) {
    case kKey:
      return take_string(data, request_.key, kMaxKeyBytes, "a key");
    case kValue:
      return take_string(data, request_.value, kMaxPayloadBytes, "a value");
    case kDesired:
      return take_string(data, request_.desired, kMaxPayloadBytes, "a value");
    case kUser:
      return take_string(data, request_.user, kMaxKeyBytes, "a user");
    case kAgent:
      return take_string(data, request_.agent, kMaxKeyBytes, "an agent");
    case kKeyList:
      return take_key_list(data);
    case kU64:
      if (!take_integer(data, 8)) return false;
      request_.number = integer_;
      return true;
    case kNonce:
      if (!take_integer(data, 4)) return false;
      request_.number = integer_;
      return true;
    case kFirstU32:
      if (!take_integer(data, 4)) return false;
      request_.first_u32 = static_cast<std::uint32_t>(integer_);
      return true;
    case kSecondU32:
      if (!take_integer(data, 4)) return false;
      request_.second_u32 = static_cast<std::uint32_t>(integer_);
      return true;
    default:  // kRole
      if (!take_integer(data, 1)) return false;
      request_.role = static_cast<std::uint8_t>(integer_);
      return true;
  }
}

bool RequestParser::take_integer(std::string_view& data, std::size_t size) {
  integer_ = 0;
  if (integer_bytes_ == 0 && data.size() >= size) {
    std::memcpy(&integer_, data.data(), size);
    data.remove_prefix(size);
    return true;
  }
  const auto taken = std::min(size - integer_bytes_, data.size());
  std::memcpy(partial_ + integer_bytes_, data.data(), taken);
  data.remove_prefix(taken);
  integer_bytes_ = static_cast<std::uint8_t>(integer_bytes_ + taken);
  if (integer_bytes_ < size) return false;
  std::memcpy(&integer_, partial_, size);
  integer_bytes_ = 0;
  return true;
}

bool RequestParser::take_length(std::string_view& data, std::size_t limit, const char* what) {
  if (!take_integer(data, 8)) return false;
  if (integer_ > limit) {
    return fail(std::string(what) + " of " + std::to_string(integer_) + " bytes is over the limit of " +
                std::to_string(limit));
  }
  left_ = integer_;
  has_length_ = true;
  return true;
}

bool RequestParser::take_string(std::string_view& data, std::string& into, std::size_t limit, const char* what) {
  if (!has_length_ && !take_length(data, limit, what)) return false;
  const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(left_, data.size()));
  into.append(data.data(), taken);
  data.remove_prefix(taken);
  left_ -= taken;
  if (left_ > 0) return false;
  has_length_ = false;
  return true;
}

bool RequestParser::take_count(std::string_view& data) {
  if (!take_integer(data, 8)) return false;
  if (integer_ > kMaxKeyCount) {
    return fail(std::to_string(integer_) + " keys in one request are over the limit of " +
                std::to_string(kMaxKeyCount));
  }
  items_left_ = integer_;
  has_count_ = true;
  return true;
}

bool RequestParser::take_key_list(std::string_view& data) {
  if (!has_count_ && !take_count(data)) return false;
  while (items_left_ > 0) {
    if (!has_length_) {
      if (!take_length(data, kMaxKeyBytes, "a key")) return false;
      key_bytes_ += left_;
      if (key_bytes_ > kMaxKeyListBytes) {
        return fail("the keys of one request are over the limit of " + std::to_string(kMaxKeyListBytes) + " bytes");
      }
      request_.keys.emplace_back();
    }
    if (!take_string(data, request_.keys.back(), kMaxKeyBytes, "a key")) return false;
    --items_left_;
  }
  has_count_ = false;
  return true;
}

bool RequestParser::take_pair(std::string_view& data) {
  if (pair_stage_ == PairStage::kFresh) {
    clear(request_.key);
    clear(request_.value);
    request_.opcode = Opcode::kSet;
    pair_stage_ = PairStage::kKey;
  }
  if (pair_stage_ == PairStage::kKey) {
    if (!take_string(data, request_.key, kMaxKeyBytes, "a key")) return false;
    pair_stage_ = PairStage::kValue;
  }
  if (!take_string(data, request_.value, kMaxPayloadBytes, "a value")) return false;
  pair_stage_ = PairStage::kFresh;
  --items_left_;
  return true;
}

bool RequestParser::fail(std::string why) {
  error_ = std::move(why);
  request_ = Request();
  return false;
}

void RequestParser::reset_request() {
  clear(request_.key);
  clear(request_.value);
  clear(request_.desired);
  clear(request_.user);
  clear(request_.agent);
  if (request_.keys.capacity() > 64) {
    request_.keys = std::vector<std::string>();
  } else {
    request_.keys.clear();
  }
  request_.number = 0;
  request_.first_u32 = 0;
  request_.second_u32 = 0;
  request_.role = 0;
  key_bytes_ = 0;
}

}  // namespace tensorplay::store
