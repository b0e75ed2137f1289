#include "runtime/group/rendezvous.hpp"

#include "runtime/base/environment.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <charconv>
#include <optional>

namespace tensorplay::distributed {
namespace {

namespace env = base::env;

int parse_number(std::string_view text, const std::string& what) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    throw InvalidArgument(std::string(what).append("=").append(text).append(": not an integer"));
  }
  return number;
}

std::uint16_t parse_port(std::string_view text, const std::string& what) {
  const int port = parse_number(text, what);
  if (port < 0 || port > 65535) {
    throw InvalidArgument(std::string(what).append("=").append(text).append(": a port is 0 to 65535"));
  }
  return static_cast<std::uint16_t>(port);
}

struct Url {
  std::string scheme;
  std::string place;  // Between :// and the query.
  std::map<std::string, std::string> query;
};

Url parse_url(std::string_view text) {
  const auto colon = text.find("://");
  if (colon == std::string_view::npos) {
    throw InvalidArgument(std::string("init_method \"")
                              .append(text)
                              .append("\" is no URL; give env://, tcp://HOST:PORT or file:///PATH"));
  }
  Url url;
  url.scheme = text.substr(0, colon);
  auto rest = text.substr(colon + 3);
  const auto question = rest.find('?');
  url.place = rest.substr(0, question);
  if (question == std::string_view::npos) return url;
  rest = rest.substr(question + 1);
  while (!rest.empty()) {
    const auto end = rest.find('&');
    const auto part = rest.substr(0, end);
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || part.find('=', equals + 1) != std::string_view::npos) {
      throw InvalidArgument(std::string("init_method \"")
                                .append(text)
                                .append("\": \"")
                                .append(part)
                                .append("\" is not of the form name=value"));
    }
    url.query.emplace(part.substr(0, equals), part.substr(equals + 1));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return url;
}

std::optional<std::string> find(const std::map<std::string, std::string>& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end() || found->second.empty()) return std::nullopt;  // Empty counts as unset.
  return found->second;
}

/// The argument, else the URL's query.
int choose(int argument, const Url& url, const std::string& name, std::string_view text) {
  const auto in_url = find(url.query, name);
  if (argument >= 0 && in_url) {
    throw InvalidArgument(std::string("init_method \"")
                              .append(text)
                              .append("\" gives ")
                              .append(name)
                              .append(", and so does the argument; give it once"));
  }
  return in_url ? parse_number(*in_url, name) : argument;
}

std::string need(const Environment& environment, const char* name) {
  if (auto value = find(environment, name)) return *value;
  throw InvalidArgument(std::string("init_process_group by env://: the environment variable ")
                            .append(name)
                            .append(" is not set; tprun sets it, or give another init_method"));
}

void need_rank_and_size(const RendezvousPlan& plan, std::string_view text) {
  if (plan.rank >= 0 && plan.world_size > 0) return;
  throw InvalidArgument(std::string("init_method \"")
                            .append(text)
                            .append("\": ")
                            .append(plan.rank < 0 ? "the rank is missing" : "the world size is missing"));
}

void parse_host_and_port(const std::string& place, std::string_view text, RendezvousPlan& plan) {
  const auto colon = place.rfind(':');
  const bool is_bare_ipv6 = colon != std::string::npos && place.find(':') != colon && place.front() != '[';
  if (colon == std::string::npos || is_bare_ipv6 || place.find(']', colon) != std::string::npos) {
    throw InvalidArgument(
        std::string("init_method \"")
            .append(text)
            .append("\": the port is missing; give tcp://HOST:PORT, or tcp://[ADDRESS]:PORT for IPv6"));
  }
  plan.host = place.substr(0, colon);
  if (plan.host.starts_with('[') && plan.host.ends_with(']')) plan.host = plan.host.substr(1, plan.host.size() - 2);
  if (plan.host.empty()) {
    throw InvalidArgument(std::string("init_method \"").append(text).append("\": the host is missing"));
  }
  plan.port = parse_port(place.substr(colon + 1), "port");
}

/// The agent serves the store that MASTER_ADDR and MASTER_PORT name, when it says so; every other is rank 0's to host.
bool agent_hosts(const RendezvousPlan& plan, const Environment& environment) {
  return find(environment, env::kUseAgentStore) == "True" && find(environment, env::kMasterAddr) == plan.host &&
         find(environment, env::kMasterPort) == std::to_string(plan.port);
}

}  // namespace

std::string RendezvousPlan::place() const {
  if (kind == Kind::kFile) return path;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  std::string text;
  text.append(is_ipv6 ? "[" : "").append(host).append(is_ipv6 ? "]:" : ":").append(std::to_string(port));
  return text;
}

Environment rendezvous_environment() {
  Environment environment;
  for (const char* name : {env::kRank, env::kWorldSize, env::kMasterAddr, env::kMasterPort, env::kUseAgentStore}) {
    if (auto value = base::env_value(name)) environment[name] = *value;
  }
  return environment;
}

RendezvousPlan plan_rendezvous(std::string_view text, int rank, int world_size, const Environment& environment) {
  const Url url = parse_url(text);
  RendezvousPlan plan;
  plan.rank = choose(rank, url, "rank", text);
  plan.world_size = choose(world_size, url, "world_size", text);
  if (url.scheme == "env") {
    if (plan.rank < 0) plan.rank = parse_number(need(environment, env::kRank), env::kRank);
    if (plan.world_size < 0) plan.world_size = parse_number(need(environment, env::kWorldSize), env::kWorldSize);
    plan.host = need(environment, env::kMasterAddr);
    plan.port = parse_port(need(environment, env::kMasterPort), env::kMasterPort);
  } else if (url.scheme == "tcp") {
    parse_host_and_port(url.place, text, plan);
  } else if (url.scheme == "file") {
    plan.kind = RendezvousPlan::Kind::kFile;
    plan.path = url.place;
    if (!plan.path.starts_with('/')) {
      throw InvalidArgument(std::string("init_method \"")
                                .append(text)
                                .append("\": the path is missing; give an absolute one, file:///PATH"));
    }
  } else {
    throw InvalidArgument(std::string("init_method \"")
                              .append(text)
                              .append("\": no such scheme; there is env, tcp and "
                                      "file"));
  }
  need_rank_and_size(plan, text);
  plan.hosts_store = plan.kind == RendezvousPlan::Kind::kTcp && plan.rank == 0 && !agent_hosts(plan, environment);
  return plan;
}

}  // namespace tensorplay::distributed
