#include "agent/option_values.hpp"

#include "agent/near_miss.hpp"
#include "agent/usage_error.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <signal.h>
#include <string.h>

namespace tensorplay::agent {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& letter : out) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return out;
}

std::optional<StreamMask> as_mask(std::string_view text) {
  const auto number = as_whole(text);
  if (!number || *number < 0 || *number > 3) return std::nullopt;
  return static_cast<StreamMask>(*number);
}

/// Rendezvous parameters that anything here or in torchrun reads.
const std::vector<std::string_view> kConfKeys = {"timeout",
                                                 "join_timeout",
                                                 "last_call_timeout",
                                                 "close_timeout",
                                                 "replacement_wait",
                                                 "heartbeat_timeout",
                                                 "keep_alive_interval",
                                                 "keep_alive_max_attempt",
                                                 "read_timeout",
                                                 "is_host",
                                                 "store_type",
                                                 "cas_backoff_max_seconds",
                                                 "rank",
                                                 "protocol",
                                                 "ssl_cert",
                                                 "ssl_cert_key",
                                                 "ca_cert",
                                                 "etcd_prefix",
                                                 "cacert",
                                                 "cert",
                                                 "key"};

/// Keys that have an option of their own.
const std::vector<std::pair<std::string_view, std::string_view>> kConfOptions = {
    {"backend", "--rdzv-backend"}, {"endpoint", "--rdzv-endpoint"}, {"run_id", "--rdzv-id"},
    {"min_nodes", "--nnodes"},     {"max_nodes", "--nnodes"},       {"local_addr", "--local-addr"}};

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<long> as_whole(std::string_view text) {
  text = trimmed(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  long number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

long parse_whole(const std::string& where, std::string_view text, long least, long most, const std::string& what) {
  const auto number = as_whole(text);
  if (!number) throw UsageError(where + ": not " + what + "; give a whole number");
  if (*number < least) throw UsageError(where + ": too small; give " + std::to_string(least) + " or more");
  if (*number > most) throw UsageError(where + ": too large; give " + std::to_string(most) + " or less");
  return *number;
}

bool parse_switch(const std::string& where, std::string_view text) {
  if (const auto number = as_whole(text)) return *number != 0;
  const std::string word = lower(trimmed(text));
  if (word == "true" || word == "yes" || word == "on" || word == "t" || word == "y") return true;
  if (word == "false" || word == "no" || word == "off" || word == "f" || word == "n") return false;
  throw UsageError(where + ": neither on nor off; give 1 or 0");
}

std::pair<int, int> parse_node_range(const std::string& where, std::string_view text) {
  const auto parts = split(text, ':');
  const auto least = as_whole(parts.front());
  const auto most = as_whole(parts.back());
  constexpr long kMost = 1'000'000;
  if (parts.size() > 2 || !least || !most) throw UsageError(where + ": not a number of nodes; give N or MIN:MAX");
  if (*least < 1) throw UsageError(where + ": a job needs a node; give 1 or more");
  if (*most < *least) throw UsageError(where + ": MAX is below MIN; give MIN:MAX");
  if (*most > kMost) throw UsageError(where + ": too many nodes; give " + std::to_string(kMost) + " or fewer");
  return {static_cast<int>(*least), static_cast<int>(*most)};
}

StreamSelection parse_streams(const std::string& where, std::string_view text) {
  StreamSelection selection;
  if (text.find(':') == std::string_view::npos) {
    const auto mask = as_mask(text);
    if (!mask) {
      throw UsageError(where +
                       ": not a choice of streams; give 0 (none), 1 (stdout), 2 (stderr), 3 (both), or RANK:MASK,...");
    }
    selection.all = *mask;
    return selection;
  }
  for (const std::string_view part : split(text, ',')) {
    const auto colon = part.find(':');
    const auto rank = as_whole(part.substr(0, colon));
    const auto mask = colon == std::string_view::npos ? std::nullopt : as_mask(part.substr(colon + 1));
    if (!rank || *rank < 0 || *rank > std::numeric_limits<int>::max() || !mask) {
      throw UsageError(where + ": '" + std::string(part) +
                       "' is not RANK:MASK; give a local rank and 0, 1, 2 or 3, as in 0:1,12:3");
    }
    selection.by_local_rank[static_cast<int>(*rank)] = *mask;
  }
  return selection;
}

std::vector<int> parse_ranks(const std::string& where, std::string_view text) {
  std::vector<int> ranks;
  if (trimmed(text).empty()) return ranks;
  for (const std::string_view part : split(text, ',')) {
    const auto rank = as_whole(part);
    if (!rank || *rank < 0 || *rank > std::numeric_limits<int>::max()) {
      throw UsageError(where + ": '" + std::string(part) + "' is not a local rank; give a list such as 0,1,2");
    }
    ranks.push_back(static_cast<int>(*rank));
  }
  return ranks;
}

std::vector<std::string> parse_filters(std::string_view text) {
  std::vector<std::string> filters(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      filters.back() += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      filters.back() += ',';
      ++i;
    } else {
      filters.emplace_back();
    }
  }
  std::erase(filters, std::string());
  return filters;
}

std::chrono::milliseconds parse_seconds(const std::string& where, std::string_view text, double least) {
  const std::string number(trimmed(text));
  char* stop = nullptr;
  const double seconds = std::strtod(number.c_str(), &stop);
  if (number.empty() || *stop != '\0' || !std::isfinite(seconds))
    throw UsageError(where + ": not a time; give seconds");
  if (seconds < least) throw UsageError(where + ": a time cannot be negative; give 0 or more seconds");
  constexpr double kMost = 1e9;  // Thirty years: far from any overflow.
  return std::chrono::milliseconds(static_cast<long long>(std::llround(std::min(seconds, kMost) * 1000)));
}

std::vector<int> parse_signals(const std::string& where, std::string_view text, std::vector<std::string>& notes) {
  std::vector<int> signals;
  for (const std::string_view part : split(text, ',')) {
    std::string name(trimmed(part));
    for (char& letter : name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    if (name.starts_with("SIG")) name.erase(0, 3);
    int signal = 0;
    if (const auto number = as_whole(name)) {
      if (*number > 0 && *number < SIGRTMIN) signal = static_cast<int>(*number);
    } else {
      for (int candidate = 1; candidate < SIGRTMIN && signal == 0; ++candidate) {
        const char* known = sigabbrev_np(candidate);
        if (known != nullptr && name == known) signal = candidate;
      }
    }
    if (signal == 0) {
      notes.push_back(where + ": '" + std::string(part) + "' is no signal and is skipped; names look like SIGTERM");
    } else if (signal == SIGKILL || signal == SIGSTOP) {
      notes.push_back(where + ": " + std::string(part) + " cannot be caught by anybody and is skipped");
    } else if (signal == SIGCHLD || signal == SIGCONT || signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE ||
               signal == SIGILL || signal == SIGABRT || signal == SIGTRAP) {
      notes.push_back(where + ": " + std::string(part) + " has a meaning of its own for a launcher and is skipped");
    } else if (std::find(signals.begin(), signals.end(), signal) == signals.end()) {
      signals.push_back(signal);
    }
  }
  return signals;
}

std::map<std::string, std::string> parse_rdzv_conf(const std::string& where, std::string_view text,
                                                   std::vector<std::string>& notes) {
  std::map<std::string, std::string> conf;
  if (trimmed(text).empty()) return conf;
  for (const std::string_view part : split(text, ',')) {
    if (trimmed(part).empty()) continue;  // A comma too many harms nobody.
    const auto equals = part.find('=');
    const std::string key(trimmed(part.substr(0, equals)));
    const std::string value(equals == std::string_view::npos ? std::string_view{} : trimmed(part.substr(equals + 1)));
    if (key.empty()) throw UsageError(where + ": '" + std::string(part) + "' has no key; give KEY=VALUE,...");
    if (value.empty()) throw UsageError(where + ": '" + key + "' has no value; give " + key + "=VALUE");
    const auto option = std::find_if(kConfOptions.begin(), kConfOptions.end(), [&](auto& o) { return o.first == key; });
    if (option != kConfOptions.end()) {
      notes.push_back(where + ": " + key + " is ignored here; give " + std::string(option->second));
      continue;
    }
    if (std::find(kConfKeys.begin(), kConfKeys.end(), key) == kConfKeys.end()) {
      const auto guess = near_miss(key, kConfKeys);
      notes.push_back(where + ": " + key + " is no setting of a rendezvous and is ignored" +
                      (guess ? "; did you mean " + std::string(*guess) + "?" : std::string()));
      continue;
    }
    if (conf.contains(key)) notes.push_back(where + ": " + key + " is given twice; the last one counts");
    conf[key] = value;
  }
  return conf;
}

}  // namespace tensorplay::agent
