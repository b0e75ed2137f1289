#include "agent/travelling_addresses.hpp"

#include <algorithm>

namespace tensorplay::agent {

std::vector<std::string> addresses_for_others(const std::string& local_addr, const std::string& on_the_way_to_the_store,
                                              const std::vector<base::InterfaceAddress>& interfaces) {
  std::vector<std::string> addresses;
  const auto add = [&addresses](const std::string& address) {
    const bool has_zone = address.find('%') != address.npos;
    if (address.empty() || has_zone || std::find(addresses.begin(), addresses.end(), address) != addresses.end())
      return;
    addresses.push_back(address);
  };
  add(local_addr);
  add(on_the_way_to_the_store);
  for (const auto& interface : interfaces) {
    if (!interface.is_loopback) add(interface.address);
  }
  for (const auto& interface : interfaces) {
    if (interface.is_loopback) add(interface.address);
  }
  return addresses;
}

}  // namespace tensorplay::agent
