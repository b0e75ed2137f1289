#include "agent/scheduler/hostlist.hpp"

#include "agent/option_values.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>

namespace tensorplay::agent {
namespace {

constexpr std::size_t kMostNames = 65'536;
constexpr std::size_t kMostDigits = 9;

struct Number {
  std::uint32_t value = 0;
  std::size_t width = 0;
};

std::optional<Number> read_number(std::string_view text) {
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  Number number{0, text.size()};
  for (const char digit : text) {
    if (std::isdigit(static_cast<unsigned char>(digit)) == 0) return std::nullopt;
    number.value = number.value * 10 + static_cast<std::uint32_t>(digit - '0');
  }
  return number;
}

std::string padded(std::uint32_t value, std::size_t width) {
  const std::string digits = std::to_string(value);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

/// What stands between brackets: "1-3,7,01-10".
std::optional<std::vector<std::string>> expand_ranges(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view part : split(text, ',')) {
    const auto dash = part.find('-');
    const auto first = read_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : read_number(part.substr(dash + 1));
    if (!first || !last || last->value < first->value) return std::nullopt;
    if (out.size() + (last->value - first->value) >= kMostNames) return std::nullopt;
    for (std::uint32_t value = first->value; value <= last->value; ++value) out.push_back(padded(value, first->width));
  }
  return out;
}

/// One name with its brackets: "rack[0-1]n[1-2]-ib".
std::optional<std::vector<std::string>> expand_name(std::string_view text) {
  std::vector<std::string> names{""};
  while (!text.empty()) {
    const auto open = text.find('[');
    const std::string_view plain = text.substr(0, open);
    if (plain.find(']') != std::string_view::npos) return std::nullopt;
    for (std::string& name : names) name += plain;
    if (open == std::string_view::npos) break;
    const auto close = text.find(']', open);
    if (close == std::string_view::npos) return std::nullopt;
    const auto ranges = expand_ranges(text.substr(open + 1, close - open - 1));
    if (!ranges || names.size() * ranges->size() > kMostNames) return std::nullopt;
    std::vector<std::string> longer;
    longer.reserve(names.size() * ranges->size());
    for (const std::string& name : names) {
      for (const std::string& number : *ranges) longer.push_back(name + number);
    }
    names = std::move(longer);
    text.remove_prefix(close + 1);
  }
  return names;
}

bool can_be_in_name(char letter) {
  return std::isspace(static_cast<unsigned char>(letter)) == 0 && letter != '(' && letter != ')' && letter != '/';
}

}  // namespace

std::optional<std::vector<std::string>> expand_hostlist(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || !std::all_of(text.begin(), text.end(), can_be_in_name)) return std::nullopt;
  std::vector<std::string> out;
  std::size_t start = 0, depth = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] == '[') ++depth;
    if (at < text.size() && text[at] == ']' && depth > 0) --depth;
    if (at < text.size() && (text[at] != ',' || depth > 0)) continue;
    const auto names = expand_name(text.substr(start, at - start));
    if (!names || out.size() + names->size() > kMostNames) return std::nullopt;
    if (at > start) out.insert(out.end(), names->begin(), names->end());
    start = at + 1;
  }
  if (out.empty()) return std::nullopt;
  return out;
}

}  // namespace tensorplay::agent
