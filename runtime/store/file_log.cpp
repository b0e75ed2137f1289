#include "runtime/store/file_log.hpp"

#include "runtime/store/value_rules.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <array>
#include <limits>

namespace tensorplay::store {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kMaxKey = 1 << 20;  // far beyond any key in use, far below what random bytes spell

std::uint32_t read_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

void append_sized(std::string& out, std::string_view bytes) {
  if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw distributed::DistStoreError("file store: " + std::to_string(bytes.size()) +
                                      " bytes do not fit a record; at most 4 GiB do");
  }
  const auto size = static_cast<std::uint32_t>(bytes.size());
  for (std::size_t i = 0; i < kLengthBytes; ++i) out += static_cast<char>(size >> (8 * i) & 0xFF);
  out += bytes;
}

/// Whether a key could begin with these bytes, of which there may be few.
bool may_begin_key(std::string_view bytes) {
  if (bytes.empty() || bytes[0] == '/' || bytes[0] == '-') return true;
  constexpr std::array<std::string_view, 4> kOwn = {file_key::kRefCount, file_key::kCleanup, file_key::kUsers,
                                                    file_key::kAttempt};
  for (const auto own : kOwn) {
    const std::size_t common = std::min(own.size(), bytes.size());
    if (own.substr(0, common) == bytes.substr(0, common)) return true;
  }
  return false;
}

enum class Shape { kRecord, kTorn, kNonsense };

/// Looks at the record at the start of `bytes` and, when whole, splits it.
Shape split_record(std::string_view bytes, std::string_view& key, std::string_view& value) {
  if (bytes.size() < kLengthBytes) return Shape::kTorn;
  const std::size_t key_size = read_u32(bytes);
  if (key_size == 0) {
    // A file that grew before its blocks were written reads as zeros after a crash of the machine.
    return bytes.find_first_not_of('\0') == std::string_view::npos ? Shape::kTorn : Shape::kNonsense;
  }
  bytes.remove_prefix(kLengthBytes);
  if (key_size > kMaxKey || !may_begin_key(bytes.substr(0, key_size))) return Shape::kNonsense;
  if (bytes.size() < key_size + kLengthBytes) return Shape::kTorn;
  key = bytes.substr(0, key_size);
  bytes.remove_prefix(key_size);
  const std::size_t value_size = read_u32(bytes);
  bytes.remove_prefix(kLengthBytes);
  if (bytes.size() < value_size) return Shape::kTorn;
  value = bytes.substr(0, value_size);
  return Shape::kRecord;
}

}  // namespace

FileLog::Fed FileLog::feed(std::string_view bytes) {
  Fed fed;
  while (!bytes.empty()) {
    std::string_view key;
    std::string_view value;
    const Shape shape = split_record(bytes, key, value);
    if (shape != Shape::kRecord) {
      fed.tail = shape == Shape::kTorn ? Tail::kTorn : Tail::kNotAStore;
      return fed;
    }
    apply(key, value);
    const std::size_t size = 2 * kLengthBytes + key.size() + value.size();
    fed.consumed += size;
    bytes.remove_prefix(size);
  }
  return fed;
}

void FileLog::apply(std::string_view key, std::string_view value) {
  if (key[0] == '-') {
    const auto found = entries_.find(key.substr(1));
    if (found != entries_.end()) entries_.erase(found);
    return;
  }
  const auto found = entries_.lower_bound(key);
  if (found != entries_.end() && found->first == key) {
    found->second.assign(value);
  } else {
    entries_.emplace_hint(found, key, value);
  }
}

const std::string* FileLog::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

std::int64_t FileLog::counter(std::string_view key) const {
  const std::string* value = find(key);
  return value == nullptr ? 0 : parse_counter(*value).value_or(0);
}

std::string encode_record(std::string_view key, std::string_view value) {
  std::string record;
  record.reserve(2 * kLengthBytes + key.size() + value.size());
  append_sized(record, key);
  append_sized(record, value);
  return record;
}

std::string encode_deletion(std::string_view key) {
  return encode_record('-' + std::string(key), "");
}

FileVerdict judge_found_file(const FileState& state, int world_size, std::string_view attempt) {
  if (state.is_empty) return FileVerdict::kUse;
  const bool is_anothers = !state.attempt.empty() && !attempt.empty() && state.attempt != attempt;
  if (state.is_lock_held) return is_anothers ? FileVerdict::kBusy : FileVerdict::kUse;
  // Whoever holds no lock may be alive all the same.
  if (state.users > state.locking_users) return FileVerdict::kUseDoubtful;
  // Without a world size the file may be meant to outlast its users.
  if (world_size < 0) return FileVerdict::kUse;
  // Nobody who is counted lives (they crashed), or all closed it in an attempt that is not this one.
  return state.users > 0 || is_anothers ? FileVerdict::kEmpty : FileVerdict::kUse;
}

}  // namespace tensorplay::store
