#include "runtime/backend/gloo/interface.hpp"

#include "runtime/base/environment.hpp"
#include "runtime/base/fd.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <array>
#include <netdb.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace tensorplay::distributed {
namespace {

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const auto comma = text.find(',');
    if (const auto name = text.substr(0, comma); !name.empty()) names.emplace_back(name);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return names;
}

std::string list_interfaces(const std::vector<base::InterfaceAddress>& addresses) {
  std::string text;
  for (const auto& address : addresses) {
    text.append(text.empty() ? "" : ", ").append(address.interface).append(" (").append(address.address).append(")");
  }
  return text;
}

}  // namespace

std::string choose_address(const std::vector<base::InterfaceAddress>& addresses, std::string_view wanted,
                           bool is_single_host, std::string_view towards) {
  std::vector<base::InterfaceAddress> allowed = addresses;
  const auto is_named = [](const std::vector<std::string>& names, const base::InterfaceAddress& address) {
    return std::find(names.begin(), names.end(), address.interface) != names.end();
  };
  if (wanted.starts_with('^')) {
    const auto names = split_names(wanted.substr(1));
    std::erase_if(allowed, [&](const auto& address) { return is_named(names, address); });
  } else if (!wanted.empty()) {
    const auto names = split_names(wanted);
    std::erase_if(allowed, [&](const auto& address) { return !is_named(names, address); });
    std::stable_sort(allowed.begin(), allowed.end(), [&](const auto& a, const auto& b) {
      return std::find(names.begin(), names.end(), a.interface) < std::find(names.begin(), names.end(), b.interface);
    });
  } else if (is_single_host) {
    const auto loopback = std::find_if(allowed.begin(), allowed.end(),
                                       [](const auto& address) { return address.is_loopback && !address.is_ipv6; });
    if (loopback != allowed.end()) return loopback->address;
  }
  if (!is_single_host) std::erase_if(allowed, [](const auto& address) { return address.is_loopback; });
  if (allowed.empty()) {
    std::string text = wanted.empty() ? "no interface" : "no interface that GLOO_SOCKET_IFNAME=";
    if (!wanted.empty()) text.append(wanted).append(" allows");
    throw DistBackendError("gloo: " + text + " can be reached by " +
                           (is_single_host ? "the other ranks" : "the other hosts") +
                           "; there is: " + list_interfaces(addresses));
  }
  const auto best =
      std::find_if(allowed.begin(), allowed.end(), [&](const auto& address) { return address.address == towards; });
  return best != allowed.end() ? best->address : allowed.front().address;
}

std::string address_towards(const std::string& host) {
  if (host.empty()) return {};
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), "1", &hints, &found) != 0) return {};
  std::string result;
  for (const addrinfo* entry = found; entry != nullptr && result.empty(); entry = entry->ai_next) {
    // Connecting a datagram socket sends nothing: the kernel only looks up the route.
    const base::UniqueFd fd(::socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    std::array<char, NI_MAXHOST> text{};
    if (!fd || ::connect(fd.get(), entry->ai_addr, entry->ai_addrlen) != 0) continue;
    if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) continue;
    if (::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      result = text.data();
    }
  }
  ::freeaddrinfo(found);
  return result;
}

}  // namespace tensorplay::distributed
