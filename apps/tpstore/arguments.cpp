#include "apps/tpstore/arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

namespace tpstore {
namespace {

std::chrono::milliseconds parse_seconds(const std::string& text) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  // 1e9 seconds are 30 years; beyond the clock's range lies only a typing error.
  if (error != std::errc{} || stop != end || !(seconds >= 0) || seconds > 1e9) {
    throw UsageError("--timeout=" + text + ": not a time; give seconds, such as 5 or 0.5");
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
}

std::uint16_t parse_port(const std::string& text) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc{} || stop != end) {
    throw UsageError("--port=" + text + ": not a port; give a number from 0 (any free one) to 65535");
  }
  return port;
}

Format parse_format(const std::string& text) {
  if (text == "text") return Format::kText;
  if (text == "raw") return Format::kRaw;
  if (text == "json") return Format::kJson;
  throw UsageError("--output=" + text + ": no such format; give text, raw or json");
}

struct Option {
  bool takes_value;
  std::function<void(Arguments&, const std::string&)> apply;
};

const std::map<std::string, Option>& all_options() {
  static const std::map<std::string, Option> options = {
      {"--endpoint", {true, [](Arguments& a, const std::string& v) { a.endpoint = v; }}},
      {"-e", {true, [](Arguments& a, const std::string& v) { a.endpoint = v; }}},
      {"--timeout", {true, [](Arguments& a, const std::string& v) { a.timeout = parse_seconds(v); }}},
      {"-t", {true, [](Arguments& a, const std::string& v) { a.timeout = parse_seconds(v); }}},
      {"--output", {true, [](Arguments& a, const std::string& v) { a.format = parse_format(v); }}},
      {"-o", {true, [](Arguments& a, const std::string& v) { a.format = parse_format(v); }}},
      {"--json", {false, [](Arguments& a, const std::string&) { a.format = Format::kJson; }}},
      {"--raw", {false, [](Arguments& a, const std::string&) { a.raw_keys = true; }}},
      {"--wait", {false, [](Arguments& a, const std::string&) { a.waits = true; }}},
      {"--host", {true, [](Arguments& a, const std::string& v) { a.host = v; }}},
      {"--port", {true, [](Arguments& a, const std::string& v) { a.port = parse_port(v); }}},
      {"--help", {false, [](Arguments& a, const std::string&) { a.wants_help = true; }}},
      {"-h", {false, [](Arguments& a, const std::string&) { a.wants_help = true; }}},
      {"--version", {false, [](Arguments& a, const std::string&) { a.wants_version = true; }}},
  };
  return options;
}

[[noreturn]] void throw_no_such_option(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, option] : all_options()) names.push_back(known);
  const std::string hint = did_you_mean(name, names);
  throw UsageError(name + ": no such option" + (hint.empty() ? "; tpstore --help lists them" : hint));
}

bool looks_like_number(const std::string& word) {
  return word.size() > 1 && word.find_first_not_of("0123456789", 1) == std::string::npos;
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

void check_operands(const Arguments& arguments) {
  const CommandInfo* command = find_command(arguments.command);
  if (command == nullptr) {
    std::vector<std::string> names;
    for (const auto& known : all_commands()) names.emplace_back(known.name);
    const std::string hint = did_you_mean(arguments.command, names);
    throw UsageError(arguments.command + ": no such command" + (hint.empty() ? "; tpstore --help lists them" : hint));
  }
  const auto count = static_cast<int>(arguments.operands.size());
  const std::string usage = std::string("tpstore ") + command->name + ' ' + command->operands;
  if (count < command->least_operands) throw UsageError(arguments.command + ": too few words; say " + usage);
  if (command->most_operands >= 0 && count > command->most_operands) {
    throw UsageError(arguments.command + ": " + arguments.operands[static_cast<std::size_t>(command->most_operands)] +
                     " is one word too many; say " + usage);
  }
}

}  // namespace

const std::vector<CommandInfo>& all_commands() {
  static const std::vector<CommandInfo> commands = {
      {"serve", "[--host ADDRESS] [--port PORT]", 0, 0, "be a store until stopped"},
      {"ping", "", 0, 0, "ask for a sign of life; says what kind of server answers"},
      {"list", "[PREFIX]", 0, 1, "all keys with sizes and values, and who has joined"},
      {"dump", "", 0, 0, "the same as one JSON object, whole values included"},
      {"num-keys", "", 0, 0, "how many keys there are"},
      {"get", "KEY", 1, 1, "the value of a key (--wait: wait for it)"},
      {"multi-get", "KEY...", 1, -1, "the values of several keys (--wait: wait for them)"},
      {"check", "KEY...", 1, -1, "whether all these keys exist"},
      {"wait", "KEY...", 1, -1, "wait until all these keys exist"},
      {"set", "KEY VALUE", 2, 2, "store a value"},
      {"multi-set", "KEY VALUE [KEY VALUE]...", 2, -1, "store several values"},
      {"add", "KEY [NUMBER]", 1, 2, "add to a counter (1 by default); prints the sum"},
      {"append", "KEY VALUE", 2, 2, "add to the end of a value"},
      {"compare-set", "KEY EXPECTED VALUE", 3, 3, "store if the value is EXPECTED; prints what is stored then"},
      {"delete", "KEY...", 1, -1, "delete keys"},
      {"queue-push", "QUEUE VALUE", 2, 2, "add to the end of a queue"},
      {"queue-pop", "QUEUE", 1, 1, "take the oldest value of a queue (--wait: wait for one)"},
      {"queue-len", "QUEUE", 1, 1, "how long a queue is"},
      {"barrier", "KEY COUNT", 2, 2, "wait until COUNT callers have arrived at KEY"},
  };
  return commands;
}

const CommandInfo* find_command(const std::string& name) {
  for (const auto& command : all_commands()) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string* nearest = nullptr;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    // Whoever types the beginning or the end of a name means it: "pop" is queue-pop.
    const bool is_part = word.size() >= 3 && candidate.size() > word.size() &&
                         (candidate.starts_with(word) || candidate.ends_with(word));
    const std::size_t distance = is_part ? 1 : edit_distance(word, candidate);
    if (distance < least && candidate.size() > 2) {
      least = distance;
      nearest = &candidate;
    }
  }
  return nearest == nullptr ? "" : "; did you mean " + *nearest + "?";
}

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  bool only_operands = false;
  bool has_command = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    // "-5" and "-" are operands: what to add, and stdin.
    const bool is_option = !only_operands && word.size() > 1 && word[0] == '-' && !looks_like_number(word);
    if (!is_option) {
      if (has_command) {
        arguments.operands.push_back(word);
      } else {
        arguments.command = word;
        has_command = true;
      }
      continue;
    }
    if (word == "--") {
      only_operands = true;
      continue;
    }
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    const auto found = all_options().find(name);
    if (found == all_options().end()) throw_no_such_option(name);
    std::string value;
    if (found->second.takes_value) {
      if (equals != std::string::npos) {
        value = word.substr(equals + 1);
      } else if (++i < words.size()) {
        value = words[i];
      } else {
        throw UsageError(name + ": needs a value after it");
      }
    } else if (equals != std::string::npos) {
      throw UsageError(name + ": takes no value, got " + word.substr(equals + 1));
    }
    found->second.apply(arguments, value);
  }
  if (arguments.wants_help || arguments.wants_version) return arguments;
  if (!has_command) throw UsageError("no command given; tpstore --help lists them");
  check_operands(arguments);
  return arguments;
}

}  // namespace tpstore
