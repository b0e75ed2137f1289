/// The rules by which every store changes a value, so that hash, file and network stores agree. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::store {

/// A counter as stores keep it: decimal text, leading blanks and a sign allowed, whatever follows the digits ignored.
/// nullopt when there is no digit or the number does not fit.
std::optional<std::int64_t> parse_counter(std::string_view text);

/// `value` plus `delta` as a counter, a missing value counting as 0; throws DistStoreError naming `key` when the value
/// is not a counter or the sum does not fit.
std::int64_t add_to_counter(const std::string* value, std::int64_t delta, std::string_view key);

/// What compare_set does: what to store (nullopt: nothing) and what to answer.
struct CompareSetOutcome {
  bool is_stored = false;
  std::string answer;
};
CompareSetOutcome compare_set_outcome(const std::string* current, std::string_view expected, std::string_view desired);

/// "a, b and 98 more": keys for an error message, never too many.
std::string describe_keys(const std::vector<std::string>& keys);

/// "wait timeout after 300ms, keys: a, b", the words that scripts look for.
std::string wait_timeout_text(std::int64_t milliseconds, const std::vector<std::string>& keys);

}  // namespace tensorplay::store
