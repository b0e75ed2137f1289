#include "tensorplay/distributed/groups.hpp"

#include "runtime/base/environment.hpp"
#include "runtime/group/backend_registry.hpp"
#include "runtime/group/group_maker.hpp"
#include "runtime/group/group_names.hpp"
#include "runtime/group/world_state.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/prefix_store.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tensorplay::distributed {
namespace {

std::string name_list(const std::vector<int>& ranks) {
  std::string text = "[";
  for (const int rank : ranks) text.append(text.size() > 1 ? ", " : "").append(std::to_string(rank));
  return text + "]";
}

void check_distinct(std::vector<int> ranks, const std::string& call) {
  std::sort(ranks.begin(), ranks.end());
  if (std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end()) return;
  throw InvalidArgument(call + ": the ranks " + name_list(ranks) + " hold one twice");
}

void check_in_range(const std::vector<int>& ranks, int size, const std::string& call) {
  for (const int rank : ranks) {
    if (rank >= 0 && rank < size) continue;
    throw InvalidArgument(call + ": rank " + std::to_string(rank) + " is out of range; ranks are 0 to " +
                          std::to_string(size - 1));
  }
}

void check_disjoint(const std::vector<std::vector<int>>& lists, const std::string& call) {
  std::map<int, std::size_t> seen_in;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    for (const int rank : lists[i]) {
      const auto [place, is_new] = seen_in.emplace(rank, i);
      if (is_new || place->second == i) continue;
      throw InvalidArgument(call + ": rank " + std::to_string(rank) + " is in both list " +
                            std::to_string(place->second) + " and list " + std::to_string(i));
    }
  }
}

/// A backend text that is not given is that of the group the new one comes from.
std::string inherited_backend(const std::string& given, const ProcessGroup& from) {
  if (!given.empty()) return given;
  return from.backend_text() == "undefined" ? std::string() : from.backend_text();
}

std::chrono::milliseconds checked_timeout(std::optional<std::chrono::milliseconds> given, const ProcessGroup& from,
                                          const std::string& call) {
  if (given && given->count() <= 0) throw InvalidArgument(call + ": the timeout has to be positive");
  return given.value_or(from.timeout());
}

struct Request {
  std::string call;
  std::string name;
  std::vector<int> ranks;
  std::chrono::milliseconds timeout;
  std::string backend;
  std::shared_ptr<const PGOptions> pg_options;
  std::string desc;
  std::optional<Device> device;
};

/// The group, or NON_GROUP_MEMBER when `own_rank` is not among its ranks.
Group make_member_group(const World::State& world, Request request, int own_rank) {
  const auto place = std::find(request.ranks.begin(), request.ranks.end(), own_rank);
  if (place == request.ranks.end()) return GroupMember::NON_GROUP_MEMBER;
  GroupMaker::Plan plan;
  plan.group.name = request.name;
  plan.group.backend_text = request.backend.empty() ? "undefined" : request.backend;
  plan.group.rank = static_cast<int>(place - request.ranks.begin());
  plan.group.global_ranks = std::move(request.ranks);
  plan.group.timeout = request.timeout;
  plan.group.store = std::make_shared<PrefixStore>(request.name + "/", world.meeting_store);
  plan.group.desc = std::move(request.desc);
  plan.group.bound_device = request.device;
  plan.backend = std::move(request.backend);
  plan.pg_options = std::move(request.pg_options);
  plan.call = std::move(request.call);
  return GroupMaker::make(std::move(plan), Deadline::after(request.timeout));
}

Group keep(World::State& world, Group group) {
  if (group->is_member()) world.groups.push_back(group);
  return group;
}

/// Which of the subgroups is the caller's.
std::pair<Group, std::vector<Group>> with_own(std::vector<Group> groups) {
  Group own = GroupMember::NON_GROUP_MEMBER;
  for (const auto& group : groups) {
    if (group->is_member()) own = group;
  }
  return {own, std::move(groups)};
}

}  // namespace

Group new_group(const NewGroupOptions& options) {
  World::State& world = World::current().state();
  const Group parent = get_default_group();
  const std::string call = "new_group";
  Request request{.call = call,
                  .name = {},
                  .ranks = options.ranks,
                  .timeout = {},
                  .backend = {},
                  .pg_options = options.pg_options,
                  .desc = {},
                  .device = {}};
  if (request.ranks.empty()) request.ranks = get_process_group_ranks();
  check_in_range(request.ranks, parent->size(), call);
  check_distinct(request.ranks, call);
  if (options.device_id && parent->bound_device() && *options.device_id != *parent->bound_device()) {
    throw InvalidArgument(call + ": device_id " + to_string(*options.device_id) + " is not the default group's, " +
                          to_string(*parent->bound_device()));
  }
  if (options.sort_ranks) std::sort(request.ranks.begin(), request.ranks.end());
  request.timeout = checked_timeout(options.timeout, *parent, call);
  request.backend = inherited_backend(options.backend, *parent);
  if (!options.backend.empty()) check_backend_text(options.backend);
  request.name = options.use_local_synchronization ? local_group_name(world, request.ranks) : next_group_name(world);
  request.call = call + " " + request.name;
  request.desc = options.group_desc.empty() ? "undefined" : options.group_desc;
  request.device = options.device_id ? options.device_id : parent->bound_device();
  return keep(world, make_member_group(world, std::move(request), parent->rank()));
}

std::pair<Group, std::vector<Group>> new_subgroups(const SubgroupsOptions& options) {
  const Group parent = options.group ? options.group : get_default_group();
  if (!parent->is_member()) return {GroupMember::NON_GROUP_MEMBER, {}};
  const int world_size = parent->size();
  int size = options.group_size;
  if (size == 0) {
    const auto local = base::env_integer(base::env::kLocalWorldSize);
    if (!local) throw InvalidArgument("new_subgroups: give group_size; LOCAL_WORLD_SIZE, its default, is not set");
    size = static_cast<int>(*local);
  }
  if (size <= 0) throw InvalidArgument("new_subgroups: group_size " + std::to_string(size) + " has to be positive");
  if (size > world_size) {
    throw InvalidArgument("new_subgroups: group_size " + std::to_string(size) + " exceeds the world size, " +
                          std::to_string(world_size));
  }
  if (world_size % size != 0) {
    throw InvalidArgument("new_subgroups: the world size, " + std::to_string(world_size) +
                          ", has to be divisible by group_size " + std::to_string(size));
  }
  std::vector<Group> groups;
  for (int start = 0; start < world_size; start += size) {
    NewGroupOptions one{.timeout = options.timeout,
                        .backend = options.backend,
                        .pg_options = options.pg_options,
                        .group_desc = options.group_desc};
    for (int rank = start; rank < start + size; ++rank) one.ranks.push_back(parent->global_rank_of(rank));
    // A part of the ranks alone may not count the groups of all.
    one.use_local_synchronization = parent != get_default_group();
    groups.push_back(new_group(one));
  }
  return with_own(std::move(groups));
}

std::pair<Group, std::vector<Group>> new_subgroups_by_enumeration(const EnumeratedSubgroupsOptions& options) {
  const std::string call = "new_subgroups_by_enumeration";
  const auto& lists = options.ranks_per_subgroup_list;
  if (lists.empty()) throw InvalidArgument(call + ": ranks_per_subgroup_list is empty");
  const int world_size = get_default_group()->size();
  for (const auto& ranks : lists) {
    if (ranks.empty()) throw InvalidArgument(call + ": a subgroup has no ranks");
    check_in_range(ranks, world_size, call);
    check_distinct(ranks, call);
  }
  check_disjoint(lists, call);
  std::vector<Group> groups;
  for (const auto& ranks : lists) {
    groups.push_back(new_group({.ranks = ranks,
                                .timeout = options.timeout,
                                .backend = options.backend,
                                .pg_options = options.pg_options,
                                .group_desc = options.group_desc}));
  }
  return with_own(std::move(groups));
}

Group split_group(const SplitGroupOptions& options) {
  const std::string call = "split_group";
  World::State& world = World::current().state();
  const Group parent = options.parent_pg ? options.parent_pg : get_default_group();
  if (!parent->is_member()) return GroupMember::NON_GROUP_MEMBER;
  if (options.split_ranks.empty()) throw InvalidArgument(call + ": split_ranks is empty");
  for (const auto& ranks : options.split_ranks) {
    if (ranks.empty()) throw InvalidArgument(call + ": a part has no ranks");
    check_in_range(ranks, parent->size(), call);
    check_distinct(ranks, call);
  }
  check_disjoint(options.split_ranks, call);
  const auto timeout = checked_timeout(options.timeout, *parent, call);
  const auto backend = split_backend(options.backend, *parent);
  const int split = world.uses_of_name[parent->name() + ":split"]++;
  for (std::size_t part = 0; part < options.split_ranks.size(); ++part) {
    std::vector<int> ranks = options.split_ranks[part];
    std::sort(ranks.begin(), ranks.end());
    if (!std::binary_search(ranks.begin(), ranks.end(), parent->rank())) continue;
    for (int& rank : ranks) rank = parent->global_rank_of(rank);
    const auto name = parent->name() + ":split:" + std::to_string(split) + ":" + std::to_string(part);
    const auto desc =
        options.group_desc.empty() ? parent->desc() + ":split:" + std::to_string(split) : options.group_desc;
    return keep(world, make_member_group(world,
                                         {.call = call + " " + name,
                                          .name = name,
                                          .ranks = std::move(ranks),
                                          .timeout = timeout,
                                          .backend = backend,
                                          .pg_options = options.pg_options,
                                          .desc = desc,
                                          .device = parent->bound_device()},
                                         get_default_group()->rank()));
  }
  return GroupMember::NON_GROUP_MEMBER;
}

Group shrink_group(const ShrinkGroupOptions& options) {
  const std::string call = "shrink_group";
  World::State& world = World::current().state();
  const Group old = options.group ? options.group : get_default_group();
  const bool is_default = old == get_default_group();
  if (!old->is_member()) throw InvalidArgument(call + ": this rank is no member of the group");
  if (options.ranks_to_exclude.empty()) throw InvalidArgument(call + ": ranks_to_exclude is empty");
  if (options.shrink_flags != SHRINK_DEFAULT && options.shrink_flags != SHRINK_ABORT) {
    throw InvalidArgument(call + ": shrink_flags " + std::to_string(options.shrink_flags) +
                          ": give SHRINK_DEFAULT or SHRINK_ABORT");
  }
  check_in_range(options.ranks_to_exclude, old->size(), call);
  check_distinct(options.ranks_to_exclude, call);
  std::vector<int> left;
  int own_rank = -1;
  std::string excluded;
  for (int rank = 0; rank < old->size(); ++rank) {
    const auto& gone = options.ranks_to_exclude;
    if (std::find(gone.begin(), gone.end(), rank) != gone.end()) {
      excluded.append("-").append(std::to_string(rank));
      if (rank == old->rank())
        throw InvalidArgument(call + ": the caller, rank " + std::to_string(rank) + ", is excluded");
      continue;
    }
    // Where the default group shrinks global ranks are counted anew.
    if (rank == old->rank()) own_rank = is_default ? static_cast<int>(left.size()) : old->global_rank_of(rank);
    left.push_back(is_default ? static_cast<int>(left.size()) : old->global_rank_of(rank));
  }
  if (options.shrink_flags == SHRINK_ABORT) old->abort("the group shrinks");
  const int use = world.uses_of_name[old->name() + ":shrunk" + excluded]++;
  const auto name = old->name() + ":shrunk" + excluded + (use == 0 ? "" : "." + std::to_string(use));
  Request request{.call = call + " " + name,
                  .name = name,
                  .ranks = std::move(left),
                  .timeout = old->timeout(),
                  .backend = inherited_backend("", *old),
                  .pg_options = options.pg_options,
                  .desc = is_default ? "default:shrunken" : old->desc() + ":shrunk",
                  .device = old->bound_device()};
  Group shrunk = make_member_group(world, std::move(request), own_rank);
  if (!is_default) {
    destroy_process_group(old);
    return keep(world, shrunk);
  }
  const auto meeting_store = std::make_shared<PrefixStore>(name + "/", world.meeting_store);
  destroy_process_group();
  world.default_group = shrunk;
  world.meeting_store = meeting_store;
  return shrunk;
}

std::vector<Group> all_groups() {
  const World::State& world = World::current().state();
  std::vector<Group> groups;
  if (world.default_group) groups.push_back(world.default_group);
  groups.insert(groups.end(), world.groups.begin(), world.groups.end());
  return groups;
}

int get_pg_count() {
  return static_cast<int>(all_groups().size());
}

}  // namespace tensorplay::distributed
