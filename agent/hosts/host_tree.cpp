#include "agent/hosts/host_tree.hpp"

#include "agent/command_line.hpp"
#include "agent/dry_run.hpp"
#include "agent/option_values.hpp"
#include "runtime/base/environment.hpp"

#include <algorithm>

namespace tensorplay::agent {
namespace {

bool stays_here(std::string_view name) {
  constexpr std::string_view kNames[] = {"HOME", "USER",     "LOGNAME",    "SHELL",  "HOSTNAME",
                                         "HOST", "PWD",      "OLDPWD",     "SHLVL",  "_",
                                         "TERM", "DISPLAY",  "XAUTHORITY", "TMPDIR", "MAIL",
                                         "TTY",  "WINDOWID", "COLUMNS",    "LINES",  base::env::kWorkerMark};
  constexpr std::string_view kPrefixes[] = {"SSH_", "XDG_", "DBUS_", "BASH_FUNC_", "TPRUN_HOSTS", "TPRUN_HOSTFILE"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<std::string> words_for_member(const std::vector<std::string>& words, Front front) {
  const auto options = std::span(words).subspan(1);
  const CommandLine line = parse_command_line(options, front);
  std::vector<std::string> out{words.front()};
  for (std::size_t i = 0; i < options.size(); ++i) {
    const bool is_of_hosts = std::any_of(line.places.begin(), line.places.end(), [i](const CommandLine::Place& place) {
      const bool names_hosts =
          place.id == OptionId::kHosts || place.id == OptionId::kHostfile || place.id == OptionId::kSshCommand;
      return names_hosts && i >= place.first && i < place.last;
    });
    if (!is_of_hosts) out.push_back(options[i]);
  }
  return out;
}

std::vector<std::vector<std::size_t>> divide(const std::vector<std::size_t>& members, std::size_t fan_out) {
  const std::size_t count = std::min(fan_out, members.size());
  std::vector<std::vector<std::size_t>> branches(count);
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = members.size() / count + (i < members.size() % count ? 1 : 0);
    branches[i].assign(members.begin() + static_cast<std::ptrdiff_t>(next),
                       members.begin() + static_cast<std::ptrdiff_t>(next + size));
    next += size;
  }
  return branches;
}

std::vector<std::string> relay_command(const std::string& ssh, const std::string& host, const std::string& program) {
  std::vector<std::string> words;
  for (const std::string_view word : split(ssh, ' ')) {
    if (!trimmed(word).empty()) words.emplace_back(trimmed(word));
  }
  const std::string& client = words.front();
  if (client.substr(client.rfind('/') + 1) == "ssh") {
    // Behind the user's own: ssh takes the first value it is given.
    words.insert(words.end(), {"-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o",
                               "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"});
  }
  words.push_back(host);
  words.push_back("exec " + shell_quoted({program, "--stdin-lifeline"}));
  return words;
}

std::vector<std::string> travelling_environment(const EnvironmentView& environment) {
  std::vector<std::string> out;
  for (const std::string_view entry : environment.entries()) {
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0 || stays_here(entry.substr(0, equals))) continue;
    out.emplace_back(entry);
  }
  return out;
}

}  // namespace tensorplay::agent
