/// The content of a store file: an append-only log of records, later ones overriding earlier ones.
///
/// Record: u32 key length, key, u32 value length, value; lengths little-endian. A user's key `k` stands as `/k`; a
/// deletion is the key `-/k` with an empty value; counters of the file itself have no slash in front. This is torch's
/// format. No I/O here: bytes come in, bytes go out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tensorplay::store {

namespace file_key {
inline constexpr std::string_view kRefCount = "refcount/";  ///< Users now; torch's too.
inline constexpr std::string_view kCleanup = "cleanup/";    ///< Users that have closed; torch's too.
inline constexpr std::string_view kUsers = "users/";        ///< Users now that hold the users' lock; ours only.
inline constexpr std::string_view kAttempt = "attempt/";    ///< Run and attempt of who began the file; ours only.
}  // namespace file_key

class FileLog {
 public:
  enum class Tail {
    kWhole,     ///< Every byte belongs to a whole record.
    kTorn,      ///< The last record is incomplete: its writer died, or the file system lost its end.
    kNotAStore  ///< What follows cannot be the start of a record.
  };
  struct Fed {
    std::size_t consumed = 0;  ///< Bytes of whole records; the rest is the tail.
    Tail tail = Tail::kWhole;
  };

  /// Applies the whole records at the start of `bytes`, which continue where the last call's `consumed` ended.
  Fed feed(std::string_view bytes);

  /// nullptr when the key is not there.
  const std::string* find(std::string_view key) const;
  /// The value of one of the file's own counters, 0 when missing or unreadable.
  std::int64_t counter(std::string_view key) const;
  const std::map<std::string, std::string, std::less<>>& entries() const { return entries_; }
  void clear() { entries_.clear(); }

 private:
  void apply(std::string_view key, std::string_view value);

  std::map<std::string, std::string, std::less<>> entries_;
};

/// One record as bytes. Throws DistStoreError when key or value do not fit their 32-bit lengths.
std::string encode_record(std::string_view key, std::string_view value);

/// The record that deletes `key`.
std::string encode_deletion(std::string_view key);

// ---- Files left behind ------------------------------------------------------------------------------------------

/// What one finds on opening a file.
struct FileState {
  bool is_empty = true;
  std::int64_t users = 0;          ///< Who has not closed it, by its own count.
  std::int64_t locking_users = 0;  ///< How many of those hold the users' lock while they live.
  bool is_lock_held = false;       ///< By at least one of them.
  std::string attempt;             ///< Empty: unknown.
};

enum class FileVerdict {
  kUse,          ///< Ours, or fresh.
  kUseDoubtful,  ///< Users of another implementation are counted; nobody can tell whether they live.
  kEmpty,        ///< Left behind by an attempt that is over.
  kBusy          ///< Another attempt is using it now.
};

/// Whether a file that was found belongs to this attempt.
FileVerdict judge_found_file(const FileState& state, int world_size, std::string_view attempt);

}  // namespace tensorplay::store
