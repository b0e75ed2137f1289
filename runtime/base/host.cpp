#include "runtime/base/host.hpp"

#include "runtime/base/environment.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <climits>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <ifaddrs.h>
#include <iterator>
#include <memory>
#include <sstream>
#include <unistd.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

namespace tensorplay::base {
namespace {

std::string kernel_host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

bool is_host_local_bridge(std::string_view interface) {
  constexpr std::array<std::string_view, 9> kPrefixes = {"docker",  "br-", "virbr",  "veth", "cni",
                                                         "flannel", "lxc", "podman", "vmnet"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](auto prefix) { return interface.starts_with(prefix); });
}

int badness(const InterfaceAddress& address) {
  if (address.is_loopback) return 8;
  if (address.is_link_local) return address.is_ipv6 ? 7 : 6;
  return (is_host_local_bridge(address.interface) ? 2 : 0) + (address.is_ipv6 ? 1 : 0);
}

InterfaceAddress describe(const ifaddrs& entry) {
  InterfaceAddress result;
  result.interface = entry.ifa_name;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (entry.ifa_addr->sa_family == AF_INET) {
    sockaddr_in address{};
    std::memcpy(&address, entry.ifa_addr, sizeof(address));
    inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    const std::uint32_t number = ntohl(address.sin_addr.s_addr);
    result.is_loopback = number >> 24 == 127;
    result.is_link_local = number >> 16 == 0xA9FE;
    result.address = text.data();
    return result;
  }
  sockaddr_in6 address{};
  std::memcpy(&address, entry.ifa_addr, sizeof(address));
  inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
  result.is_ipv6 = true;
  result.is_loopback = IN6_IS_ADDR_LOOPBACK(&address.sin6_addr);
  result.is_link_local = IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr);
  result.address = text.data();
  if (result.is_link_local) result.address += '%' + result.interface;
  return result;
}

}  // namespace

std::string short_host_name() {
  const std::string name = kernel_host_name();
  return name.substr(0, name.find('.'));
}

std::string full_host_name() {
  std::string name = kernel_host_name();
  if (name.find('.') != std::string::npos) return name;
  const std::string listed = find_full_name(read_file("/etc/hosts"), name);
  return listed.empty() ? name : listed;
}

std::string find_full_name(std::string_view hosts_file, std::string_view host) {
  std::istringstream lines{std::string(hosts_file)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    words >> word;  // the address
    std::string dotted;
    bool is_ours = false;
    while (words >> word) {
      is_ours = is_ours || word == host || word.starts_with(std::string(host) + '.');
      if (dotted.empty() && word.find('.') != std::string::npos && !word.starts_with("localhost.")) dotted = word;
    }
    if (is_ours && !dotted.empty()) return dotted;
  }
  return "";
}

std::string boot_id() {
  return trimmed(read_file("/proc/sys/kernel/random/boot_id"));
}

std::string host_identity() {
  std::array<char, 64> network{};
  const ssize_t length = readlink("/proc/self/ns/net", network.data(), network.size());
  std::string boot = boot_id();
  if (boot.empty()) boot = kernel_host_name();
  return boot + '/' + std::string(network.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
}

std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    throw distributed::SocketError(std::string("cannot list the network interfaces: ") + std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  std::vector<InterfaceAddress> addresses;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    if (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6) continue;
    addresses.push_back(describe(*entry));
  }
  sort_best_first(addresses);
  return addresses;
}

void sort_best_first(std::vector<InterfaceAddress>& addresses) {
  std::stable_sort(addresses.begin(), addresses.end(),
                   [](const auto& a, const auto& b) { return badness(a) < badness(b); });
}

std::string current_user() {
  const auto uid = static_cast<std::uint32_t>(geteuid());
  if (std::string name = find_user_name(read_file("/etc/passwd"), uid); !name.empty()) return name;
  for (const char* variable : {"USER", "LOGNAME"}) {
    if (const auto name = env_value(variable); name && !name->empty()) return *name;
  }
  return "uid" + std::to_string(uid);
}

std::string find_user_name(std::string_view passwd_file, std::uint32_t uid) {
  std::istringstream lines{std::string(passwd_file)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name, password, number;
    if (!std::getline(fields, name, ':') || !std::getline(fields, password, ':') || !std::getline(fields, number, ':'))
      continue;
    std::uint32_t value = 0;
    const char* end = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), end, value);
    if (error == std::errc{} && stop == end && value == uid) return name;
  }
  return "";
}

}  // namespace tensorplay::base
