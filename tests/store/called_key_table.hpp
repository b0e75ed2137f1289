/// A key table with calls that read well and releases that are collected.
#pragma once

#include "runtime/store/key_table.hpp"

#include <string>
#include <utility>
#include <vector>

namespace tensorplay::store {

struct CalledKeyTable {
  KeyTable table;
  Releases releases;

  void set(std::string key, std::string value) { table.set(std::move(key), std::move(value), releases); }
  void append(std::string key, std::string value) { table.append(std::move(key), std::move(value), releases); }
  std::optional<std::int64_t> add(std::string key, std::int64_t delta) {
    return table.add(std::move(key), delta, releases);
  }
  std::string compare_set(std::string key, std::string expected, std::string desired) {
    return *table.compare_set(std::move(key), std::move(expected), std::move(desired), releases);
  }
  void push(std::string queue, std::string value) { table.push(std::move(queue), std::move(value), releases); }
  void wait(WaiterId id, std::vector<std::string> names, WaitKind kind = WaitKind::kKeys) {
    table.wait(id, kind, std::move(names), releases);
  }
  bool arrive(WaiterId id, std::string key, std::int64_t world) {
    return table.arrive(id, std::move(key), world, releases);
  }
  void cancel(WaiterId id) { table.cancel(id, releases); }

  std::string get(std::string_view key) const {
    const auto value = table.get(key);
    return value ? *value : "<missing>";
  }

  /// Who has been released since the last call, in order; a value behind an equals sign.
  std::string released() {
    std::string text;
    for (const auto& release : releases) {
      if (!text.empty()) text += " ";
      text += std::to_string(release.waiter);
      if (release.value) text += "=" + *release.value;
      for (const auto& value : release.values) text += "," + (value ? *value : std::string("<missing>"));
    }
    releases.clear();
    return text;
  }
};

}  // namespace tensorplay::store
