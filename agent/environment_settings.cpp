#include "agent/environment_settings.hpp"

#include "agent/command_line.hpp"
#include "agent/near_miss.hpp"
#include "agent/option_values.hpp"
#include "runtime/base/environment.hpp"

#include <cctype>

namespace tensorplay::agent {
namespace {

/// "NPROC_PER_NODE" -> its option; only upper case counts.
const OptionSpec* option_of_variable(std::string_view variable) {
  std::string name;
  for (const char letter : variable) {
    if (letter == '-' || std::islower(static_cast<unsigned char>(letter)) != 0) return nullptr;
    name += letter == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return find_option(name);
}

void note_misspelt(std::string_view entry, std::vector<std::string>& notes) {
  const std::string variable(entry.substr(0, entry.find('=')));
  std::vector<std::string_view> names;
  for (const OptionSpec& spec : option_table()) {
    if (spec.is_setting || spec.id == OptionId::kConfig) names.push_back(spec.name);
  }
  const auto guess = near_miss(std::string_view(variable).substr(6), names);
  std::string note = variable + ": names no option and is ignored";
  if (guess) note += "; did you mean TPRUN_" + variable_name(*find_option(*guess)) + "?";
  notes.push_back(note);
}

}  // namespace

std::string variable_name(const OptionSpec& spec) {
  std::string name;
  for (const char letter : spec.name) {
    name += letter == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return name;
}

void read_environment_settings(const EnvironmentView& environment, Front front, Settings& settings,
                               std::vector<std::string>& notes) {
  for (const std::string_view entry : environment.entries()) {
    const bool is_pet = entry.starts_with("PET_");
    if (!is_pet && !entry.starts_with("TPRUN_")) continue;
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::size_t prefix = is_pet ? 4 : 6;
    const OptionSpec* spec = option_of_variable(entry.substr(prefix, equals - prefix));
    if (entry.substr(0, equals) == base::env::kWorkerMark) continue;  // An outer tprun's.
    if (entry.substr(0, equals) == base::env::kRdzvToken) continue;   // Not an option: see load_secret().
    if (spec == nullptr || !(spec->is_setting || spec->id == OptionId::kConfig)) {
      if (!is_pet) note_misspelt(entry, notes);
      continue;
    }
    if (!is_known_to(*spec, front) || (is_pet && !spec->has_pet)) continue;
    std::string value(entry.substr(equals + 1));
    const std::string place(entry.substr(0, equals));
    if (spec->kind == OptionKind::kFlag) value.assign(1, parse_switch(place + "=" + value, value) ? '1' : '0');
    settings.set(spec->id, {std::move(value), is_pet ? Source::kPet : Source::kTprun, place});
  }
}

}  // namespace tensorplay::agent
