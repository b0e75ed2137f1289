#include "agent/scheduler/node_address.hpp"

#include "agent/child_output.hpp"
#include "agent/option_values.hpp"
#include "agent/scheduler/allocation.hpp"
#include "agent/scheduler/variables.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cctype>

namespace tensorplay::agent {
namespace {

constexpr std::chrono::seconds kPatience{5};

bool can_be_node(const std::string& name) {
  return !name.empty() && name[0] != '-' && std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '-' || letter == '_' || letter == '.';
  });
}

}  // namespace

std::vector<std::string> addresses_in_scontrol(std::string_view printed, std::string_view name) {
  std::vector<std::string> addresses;
  for (const std::string_view line : split(printed, '\n')) {
    for (const std::string_view word : split(line, ' ')) {
      const auto equals = word.find('=');
      const std::string_view key = word.substr(0, equals);
      if (equals == std::string_view::npos || (key != "NodeAddr" && key != "NodeHostName")) continue;
      const std::string_view value = word.substr(equals + 1);
      if (!value.empty() && value != name) addresses.emplace_back(value);
    }
  }
  return each_once(addresses);
}

std::vector<std::string> ask_slurm(const std::string& name) {
  if (!can_be_node(name)) return {};
  const auto printed = output_of({"scontrol", "-o", "show", "node", name}, distributed::Deadline::after(kPatience));
  if (!printed) return {};
  // NodeAddr is meant for this; the host's own name is what is left where it is a name that resolves nowhere.
  for (const std::string& address : addresses_in_scontrol(*printed, name)) {
    try {
      std::vector<std::string> out;
      for (const auto& resolved : base::SocketAddress::resolve(address, 0)) out.push_back(resolved.host());
      if (!out.empty()) return out;
    } catch (const distributed::SocketError&) {
      continue;
    }
  }
  return {};
}

std::function<std::vector<std::string>(const std::string& host)> name_source(const EnvironmentView& environment) {
  if (!environment.find_non_empty(scheduler_env::kSlurmJobId)) return {};
  return ask_slurm;
}

}  // namespace tensorplay::agent
