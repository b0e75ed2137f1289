#include "agent/hosts/host_list.hpp"

#include "agent/option_values.hpp"
#include "agent/scheduler/hostlist.hpp"
#include "agent/usage_error.hpp"

#include <algorithm>
#include <cctype>

namespace tensorplay::agent {
namespace {

constexpr long kMostSlots = 100'000;

/// What ssh cannot take for an option, and no shell for more than a word.
bool can_be_host(std::string_view name) {
  return !name.empty() && name[0] != '-' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == ':' || c == '%' || c == '@';
  });
}

int parse_slots(const std::string& where, std::string_view text) {
  return static_cast<int>(parse_whole(where, text, 1, kMostSlots, "a number of workers"));
}

/// "n1", "n1:8", "[fd00::1]:8", "fd00::1".
HostEntry parse_host(const std::string& where, std::string_view text) {
  HostEntry host;
  std::string_view name = text, slots;
  if (text.starts_with('[') && text.find(':') < text.find(']')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) throw UsageError(where + ": the brackets do not fit; give [ADDRESS]:SLOTS");
    name = text.substr(1, close - 1);
    slots = text.substr(close + 1);
    if (!slots.empty() && slots[0] != ':') throw UsageError(where + ": the brackets do not fit; give [ADDRESS]:SLOTS");
    if (!slots.empty()) slots.remove_prefix(1);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    name = text.substr(0, text.find(':'));
    slots = text.substr(text.find(':') + 1);
    if (slots.empty())
      throw UsageError(where + ": '" + std::string(text) + "' has no number behind ':'; give HOST:SLOTS");
  }
  if (!slots.empty()) host.slots = parse_slots(where + ": " + std::string(text), slots);
  host.name = std::string(name);
  return host;
}

void check(const std::string& where, const HostEntry& host) {
  if (!can_be_host(host.name)) {
    throw UsageError(where + ": '" + host.name +
                     "' is not a host; give names or addresses, each with :SLOTS if need be");
  }
}

/// A host named again adds its slots to the first mention; without any, each mention is one.
std::vector<HostEntry> merged(const std::vector<HostEntry>& entries) {
  std::vector<HostEntry> out;
  for (const HostEntry& entry : entries) {
    const auto known =
        std::find_if(out.begin(), out.end(), [&](const HostEntry& host) { return host.name == entry.name; });
    if (known == out.end()) {
      out.push_back(entry);
    } else {
      known->slots = known->slots.value_or(1) + entry.slots.value_or(1);
    }
  }
  return out;
}

/// Splits at commas outside of brackets.
std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] == '[') ++depth;
    if (at < text.size() && text[at] == ']') --depth;
    if (at < text.size() && (text[at] != ',' || depth > 0)) continue;
    const std::string_view part = trimmed(text.substr(start, at - start));
    if (!part.empty()) parts.push_back(part);
    start = at + 1;
  }
  return parts;
}

}  // namespace

std::vector<HostEntry> parse_hosts(const std::string& where, std::string_view text) {
  std::vector<HostEntry> hosts;
  for (const std::string_view part : split_list(text)) {
    const HostEntry host = parse_host(where, part);
    const auto names = host.name.find('[') == std::string::npos
                           ? std::vector<std::string>{host.name}
                           : expand_hostlist(host.name).value_or(std::vector<std::string>{host.name});
    for (const std::string& name : names) {
      hosts.push_back({name, host.slots});
      check(where, hosts.back());
    }
  }
  if (hosts.empty()) throw UsageError(where + ": names no host; give them with commas between");
  return merged(hosts);
}

std::vector<HostEntry> parse_hostfile(const std::string& where, std::string_view text) {
  std::vector<HostEntry> hosts;
  int number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    const std::string at = where + ":" + std::to_string(++number);
    std::string line(trimmed(raw.substr(0, raw.find('#'))));
    std::replace(line.begin(), line.end(), '\t', ' ');
    std::vector<std::string_view> words;
    for (const std::string_view word : split(line, ' ')) {
      if (!trimmed(word).empty()) words.push_back(trimmed(word));
    }
    if (words.empty()) continue;
    HostEntry host = parse_host(at, words[0]);
    check(at, host);
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i].starts_with("slots="))
        host.slots = parse_slots(at + ": " + std::string(words[i]), words[i].substr(6));
    }
    if (words.size() > 1 && as_whole(words[1])) host.slots = parse_slots(at, words[1]);
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) throw UsageError(where + ": names no host; give one on each line");
  return merged(hosts);
}

}  // namespace tensorplay::agent
