#include "runtime/store/value_rules.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <charconv>

namespace tensorplay::store {

std::optional<std::int64_t> parse_counter(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\n\v\f\r");
  if (start == std::string_view::npos) return std::nullopt;
  text.remove_prefix(start);
  // from_chars takes a minus but no plus; "+-5" must not slip through.
  if (text.front() == '+') {
    text.remove_prefix(1);
    if (text.empty() || text.front() == '-') return std::nullopt;
  }
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

std::int64_t add_to_counter(const std::string* value, std::int64_t delta, std::string_view key) {
  std::int64_t current = 0;
  if (value != nullptr) {
    const auto parsed = parse_counter(*value);
    if (!parsed) {
      throw distributed::DistStoreError("add: the value of " + std::string(key) + " is not a number (\"" +
                                        value->substr(0, 40) + "\")");
    }
    current = *parsed;
  }
  std::int64_t sum = 0;
  if (__builtin_add_overflow(current, delta, &sum)) {
    throw distributed::DistStoreError("add: " + std::string(key) + " would pass the range of 64 bits");
  }
  return sum;
}

CompareSetOutcome compare_set_outcome(const std::string* current, std::string_view expected, std::string_view desired) {
  if (current == nullptr) {
    if (expected.empty()) return {true, std::string(desired)};
    return {false, std::string(expected)};
  }
  if (*current == expected) return {true, std::string(desired)};
  return {false, *current};
}

std::string describe_keys(const std::vector<std::string>& keys) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(keys.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + keys[i];
  if (keys.size() > kShown) text += " and " + std::to_string(keys.size() - kShown) + " more";
  return text;
}

std::string wait_timeout_text(std::int64_t milliseconds, const std::vector<std::string>& keys) {
  return "wait timeout after " + std::to_string(milliseconds) + "ms, keys: " + describe_keys(keys);
}

}  // namespace tensorplay::store
