/// What has been said about each option, and by whom. Command line, environment and configuration file all end here;
/// the stronger source wins whatever the order in which they are read.
/// Thread rules: a value.
#pragma once

#include "agent/option_table.hpp"

#include <array>
#include <optional>
#include <string>

namespace tensorplay::agent {

/// Weakest first.
enum class Source : std::uint8_t { kConfigFile, kPet, kTprun, kCommandLine };

struct Setting {
  std::string value;  ///< As written; "1" for a flag that is on, "0" for one that is off.
  Source source = Source::kCommandLine;
  std::string place;  ///< Where, as the user would recognise it: "--nnodes", "PET_NNODES", "job.toml:3: nnodes".
};

class Settings {
 public:
  /// Keeps the stronger of old and new; of two equally strong ones the later.
  void set(OptionId id, Setting setting) {
    auto& slot = slots_[static_cast<std::size_t>(id)];
    if (!slot || slot->source <= setting.source) slot = std::move(setting);
  }

  const Setting* find(OptionId id) const {
    const auto& slot = slots_[static_cast<std::size_t>(id)];
    return slot ? &*slot : nullptr;
  }

  bool is_given(OptionId id) const { return find(id) != nullptr; }
  bool is_on(OptionId id) const { return is_given(id) && find(id)->value == "1"; }

  /// The value as written, or the option's default.
  std::string value_or(OptionId id, std::string_view fallback) const {
    const Setting* setting = find(id);
    return setting != nullptr ? setting->value : std::string(fallback);
  }

  /// "--nnodes=a", "PET_NNODES=a", "job.toml:3: nnodes=a": how a message begins. The option must be given.
  std::string quoted(OptionId id) const { return find(id)->place + "=" + find(id)->value; }

 private:
  std::array<std::optional<Setting>, kOptionCount> slots_;
};

}  // namespace tensorplay::agent
