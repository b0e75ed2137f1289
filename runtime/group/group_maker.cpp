#include "runtime/group/group_maker.hpp"

#include "runtime/base/log.hpp"
#include "runtime/group/backend_registry.hpp"
#include "runtime/group/backend_string.hpp"
#include "runtime/group/checked_backend.hpp"
#include "runtime/group/recorded_backend.hpp"
#include "runtime/group/roll_call.hpp"
#include "tensorplay/distributed/debug_level.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/prefix_store.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace tensorplay::distributed {
namespace {

BackendOptions describe(const GroupMaker::Plan& plan, DeviceType device, Deadline deadline) {
  BackendOptions creation;
  creation.store = std::make_shared<PrefixStore>(std::string(to_string(device)) + "/", plan.group.store);
  creation.rank = plan.group.rank;
  creation.size = static_cast<int>(plan.group.global_ranks.size());
  creation.timeout = plan.group.timeout;
  creation.init_limit = store_timeout(deadline);
  creation.group_name = plan.group.name;
  creation.global_ranks = plan.group.global_ranks;
  creation.bound_device = plan.group.bound_device;
  creation.group_desc = plan.group.desc;
  creation.group_store = plan.group.store;
  creation.pg_options = plan.pg_options;
  return creation;
}

std::shared_ptr<Backend> with_seams(std::shared_ptr<Backend> backend) {
  if (get_debug_level() == DebugLevel::DETAIL) backend = std::make_shared<CheckedBackend>(std::move(backend));
  return std::make_shared<RecordedBackend>(std::move(backend));
}

}  // namespace

std::shared_ptr<ProcessGroup> GroupMaker::make(Plan plan, Deadline deadline) {
  const auto by_device = parse_backend_string(plan.backend);
  RollCall roll_call(plan.group.store, plan.group.rank, static_cast<int>(plan.group.global_ranks.size()));
  const bool has_peers = std::any_of(by_device.begin(), by_device.end(),
                                     [](const auto& pair) { return !find_backend(pair.second).traits.has_no_peers; });
  if (has_peers) roll_call.arrive("joined", plan.call, deadline);

  std::shared_ptr<ProcessGroup> group;
  std::map<std::string, std::shared_ptr<Backend>> made;  // One object for all devices of one backend.
  std::map<DeviceType, std::shared_ptr<Backend>> backends;
  for (const auto& [device, name] : by_device) {
    auto& backend = made[name];
    if (!backend && !group) {
      const auto product = find_backend(name).create(describe(plan, device, deadline));
      if (product.group && made.size() > 1) {
        throw InvalidArgument(plan.call + ": backend " + name +
                              " brings a whole group; it cannot be paired with others");
      }
      if (!product.group && !product.backend) {
        throw InvalidArgument(plan.call + ": backend " + name + " says that this rank is no member of the group");
      }
      group = product.group;
      if (product.backend) backend = with_seams(product.backend);
    }
    if (backend) backends[device] = backend;
  }
  if (group) {
    group->options_ = plan.group;
  } else {
    group = std::make_shared<ProcessGroup>(plan.group);
  }
  for (const auto& [device, backend] : backends) group->set_backend(device, backend);
  if (has_peers) roll_call.arrive("connected", plan.call + ", connecting", deadline);
  if (get_debug_level() != DebugLevel::OFF) {
    base::log::info([&] {
      return plan.call + ": group " + group->name() + " (" + group->desc() + ") is made: rank " +
             std::to_string(group->rank()) + " of " + std::to_string(group->size()) + ", " + group->backend_config();
    });
  }
  return group;
}

}  // namespace tensorplay::distributed
