#include "agent/endpoint.hpp"

#include "agent/option_values.hpp"
#include "agent/usage_error.hpp"

#include <algorithm>
#include <cctype>

namespace tensorplay::agent {
namespace {

std::uint16_t parse_port(const std::string& where, std::string_view text) {
  const auto port = as_whole(text);
  if (!port || *port < 0 || *port > 65535) {
    throw UsageError(where + ": '" + std::string(text) + "' is not a port; give a number from 0 to 65535");
  }
  return static_cast<std::uint16_t>(*port);
}

bool can_be_host(std::string_view host) {
  return std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == ':' || c == '%';
  });
}

}  // namespace

Endpoint parse_endpoint(const std::string& where, std::string_view text) {
  text = trimmed(text);
  Endpoint endpoint;
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    const std::string_view rest = close == std::string_view::npos ? "" : text.substr(close + 1);
    if (close == std::string_view::npos || (!rest.empty() && rest[0] != ':')) {
      throw UsageError(where + ": the brackets do not fit; give [ADDRESS]:PORT");
    }
    host = text.substr(1, close - 1);
    port = rest.empty() ? rest : rest.substr(1);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(text.find(':') + 1);
  }
  if (!can_be_host(host)) {
    throw UsageError(where + ": '" + std::string(host) + "' is not a host; give a name or an address, and :PORT");
  }
  endpoint.host = std::string(host);
  if (!port.empty()) endpoint.port = parse_port(where, port);
  return endpoint;
}

std::string format_endpoint(const std::string& host, std::uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace tensorplay::agent
