#include "agent/hosts/meeting_names.hpp"

#include "agent/child_output.hpp"
#include "agent/option_values.hpp"
#include "runtime/base/host.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>

namespace tensorplay::agent {
namespace {

constexpr std::size_t kMeetingHosts = 3;
constexpr std::chrono::seconds kPatience{5};

std::vector<base::SocketAddress> addresses_of(const std::string& name) {
  try {
    return base::SocketAddress::resolve(name, 0);
  } catch (const distributed::SocketError&) {
    return {};
  }
}

std::string without_user(const std::string& host) {
  return host.substr(host.rfind('@') + 1);
}

std::string ask_ssh(const std::string& host, const std::string& ssh) {
  std::vector<std::string> words;
  for (const std::string_view word : split(ssh, ' ')) {
    if (!trimmed(word).empty()) words.emplace_back(trimmed(word));
  }
  if (words.front().substr(words.front().rfind('/') + 1) != "ssh") return "";
  words.insert(words.end(), {"-G", host});
  return host_name_in_ssh_configuration(output_of(words, distributed::Deadline::after(kPatience)).value_or(""));
}

/// An address of this host that others can reach; a loopback one where it has no other.
std::string own_address() {
  const auto all = base::interface_addresses();
  return all.empty() ? "127.0.0.1" : all.front().address;
}

}  // namespace

bool is_this_host(const std::string& name) {
  return name == "localhost" || name == "127.0.0.1" || name == "::1" || name == base::short_host_name() ||
         name == base::full_host_name();
}

std::string host_name_in_ssh_configuration(const std::string& printed) {
  constexpr std::string_view kKey = "hostname ";
  for (const std::string_view line : split(printed, '\n')) {
    if (line.starts_with(kKey)) return std::string(trimmed(line.substr(kKey.size())));
  }
  return "";
}

std::vector<std::string> find_meeting_names(const std::vector<HostEntry>& hosts, const std::string& ssh) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(hosts.size(), kMeetingHosts); ++i) {
    const std::string name = without_user(hosts[i].name);
    auto addresses = addresses_of(name);
    std::string found = name;
    if (addresses.empty()) {
      if (const std::string configured = ask_ssh(hosts[i].name, ssh); !configured.empty()) found = configured;
      addresses = addresses_of(found);
    }
    const bool is_loopback =
        std::any_of(addresses.begin(), addresses.end(), [](const auto& a) { return a.is_loopback(); });
    names.push_back(is_loopback && hosts.size() > 1 ? own_address() : found);
  }
  // Names that lead to one host, as many do in a trial on one machine, are one place to meet.
  std::vector<std::string> distinct;
  for (const std::string& name : names) {
    if (std::find(distinct.begin(), distinct.end(), name) == distinct.end()) distinct.push_back(name);
  }
  return distinct;
}

}  // namespace tensorplay::agent
