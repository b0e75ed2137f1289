/// A process environment that can be looked up and walked: tprun's own, or one made by a test.
/// Ownership: views the strings it was made from; they must outlive it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::agent {

class EnvironmentView {
 public:
  /// A null-terminated block such as `environ`.
  explicit EnvironmentView(const char* const* block) {
    for (; block != nullptr && *block != nullptr; ++block) entries_.emplace_back(*block);
  }
  explicit EnvironmentView(const std::vector<std::string>& entries) : entries_(entries.begin(), entries.end()) {}

  /// The first value of that name; nullopt when unset. An empty value is a value.
  std::optional<std::string_view> find(std::string_view name) const {
    for (const std::string_view entry : entries_) {
      if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
        return entry.substr(name.size() + 1);
      }
    }
    return std::nullopt;
  }

  /// The same, but an empty value counts as unset.
  std::optional<std::string_view> find_non_empty(std::string_view name) const {
    const auto value = find(name);
    return value && !value->empty() ? value : std::nullopt;
  }

  /// "NAME=value" each, in order.
  const std::vector<std::string_view>& entries() const { return entries_; }

 private:
  std::vector<std::string_view> entries_;
};

}  // namespace tensorplay::agent
