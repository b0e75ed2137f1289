#include "runtime/group/group_names.hpp"

#include "runtime/group/backend_string.hpp"
#include "tensorplay/distributed/errors.hpp"

namespace tensorplay::distributed {

std::string next_group_name(World::State& world) {
  return std::to_string(++world.groups_named);
}

std::string local_group_name(World::State& world, const std::vector<int>& ranks) {
  std::string name = "local";
  for (const int rank : ranks) name.append("_").append(std::to_string(rank));
  const int use = world.uses_of_name[name]++;
  return name + "." + std::to_string(use);
}

void check_backend_text(const std::string& text) {
  parse_backend_string(text);
}

std::string split_backend(const std::string& wanted, const ProcessGroup& parent) {
  if (wanted.empty()) return parent.backend_text() == "undefined" ? std::string() : parent.backend_text();
  for (const auto& [device, name] : parse_backend_string(wanted)) {
    const auto found = parent.backends().find(device);
    if (found != parent.backends().end() && found->second->name() == name) continue;
    throw InvalidArgument("split_group: backend \"" + wanted + "\" asks for " + std::string(to_string(device)) + ":" +
                          name + "; the parent has " + parent.backend_config());
  }
  return wanted;
}

}  // namespace tensorplay::distributed
