#include "agent/config_file.hpp"

#include "agent/near_miss.hpp"
#include "agent/usage_error.hpp"

// Compiled in: a shared library would cost every start, and the file is read by few.
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <sstream>
#include <vector>

namespace tensorplay::agent {
namespace {

std::string at_line(const std::string& path, const toml::source_region& region) {
  return path + ":" + std::to_string(region.begin.line);
}

const OptionSpec& find_key(const std::string& place, std::string_view key) {
  if (const OptionSpec* spec = find_option(key); spec != nullptr && spec->is_setting) return *spec;
  std::vector<std::string_view> names;
  for (const OptionSpec& spec : option_table()) {
    if (spec.is_setting) names.push_back(spec.name);
  }
  const auto guess = near_miss(key, names);
  throw UsageError(place + ": " + std::string(key) + ": no such key; " +
                   (guess ? "did you mean " + std::string(*guess) + "?" : "keys are named as options are, without --"));
}

std::string scalar_text(const std::string& place, const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "1" : "0";
  if (const auto* fraction = node.as_floating_point()) {
    std::ostringstream out;
    out << fraction->get();
    return out.str();
  }
  throw UsageError(place + ": not a value; give a number, a text, true or false");
}

bool takes_list(OptionId id) {
  return id == OptionId::kLocalRanksFilter || id == OptionId::kSignalsToHandle || id == OptionId::kRdzvEndpoint ||
         id == OptionId::kHosts || id == OptionId::kDuplicateStdoutFilters || id == OptionId::kDuplicateStderrFilters;
}

std::string list_text(const std::string& place, OptionId id, const toml::array& list) {
  if (!takes_list(id)) throw UsageError(place + ": takes one value, not a list");
  const bool escapes = id == OptionId::kDuplicateStdoutFilters || id == OptionId::kDuplicateStderrFilters;
  std::string out;
  for (const toml::node& item : list) {
    if (&item != list.get(0)) out += ',';
    for (const char letter : scalar_text(place, item)) out += escapes && letter == ',' ? ",," : std::string(1, letter);
  }
  return out;
}

std::string table_text(const std::string& place, OptionId id, const toml::table& table) {
  const bool is_conf = id == OptionId::kRdzvConf;
  if (!is_conf && id != OptionId::kRedirects && id != OptionId::kTee) {
    throw UsageError(place + ": takes one value, not a table");
  }
  std::string out;
  for (const auto& [key, node] : table) {
    if (!out.empty()) out += ',';
    out += std::string(key.str()) + (is_conf ? "=" : ":") + scalar_text(place, node);
  }
  return out;
}

std::string value_text(const std::string& place, const OptionSpec& spec, const toml::node& node) {
  if (spec.kind == OptionKind::kFlag) {
    if (const auto* flag = node.as_boolean()) return flag->get() ? "1" : "0";
    throw UsageError(place + ": neither on nor off; give true or false");
  }
  if (const auto* list = node.as_array()) return list_text(place, spec.id, *list);
  if (const auto* table = node.as_table()) return table_text(place, spec.id, *table);
  if (node.is_boolean()) throw UsageError(place + ": takes a value, not true or false");
  return scalar_text(place, node);
}

}  // namespace

void read_config_file(const std::string& where, const std::string& path, const Machine& machine, Settings& settings) {
  const auto text = machine.read_file(path);
  if (!text) throw UsageError(where + ": cannot be read; give a TOML file");
  toml::table file;
  try {
    file = toml::parse(*text, std::string_view(path));
  } catch (const toml::parse_error& error) {
    throw UsageError(at_line(path, error.source()) + ": not TOML: " + std::string(error.description()));
  }
  for (const auto& [key, node] : file) {
    const std::string place = at_line(path, node.source());
    const OptionSpec& spec = find_key(place, key.str());
    const std::string named = place + ": " + std::string(key.str());
    settings.set(spec.id, {value_text(named, spec, node), Source::kConfigFile, named});
  }
}

}  // namespace tensorplay::agent
