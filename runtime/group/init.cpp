#include "tensorplay/distributed/init.hpp"

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/group/backend_registry.hpp"
#include "runtime/group/backend_string.hpp"
#include "runtime/group/group_maker.hpp"
#include "runtime/group/rendezvous.hpp"
#include "runtime/group/roll_call.hpp"
#include "runtime/group/world_state.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/hash_store.hpp"
#include "tensorplay/distributed/prefix_store.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace tensorplay::distributed {
namespace {

/// A store with the caller's place in it, and how often this World has used it before.
struct Meeting {
  std::shared_ptr<Store> store;
  int rank = -1;
  int size = -1;
};

void check_arguments(const InitOptions& options) {
  if (options.store && !options.init_method.empty()) {
    throw InvalidArgument("init_process_group: give a store or an init_method, not both");
  }
  if (options.store && options.world_size <= 0) {
    throw InvalidArgument("init_process_group: a store needs a positive world_size beside it");
  }
  if (options.store && options.rank < 0) {
    throw InvalidArgument("init_process_group: a store needs the rank beside it");
  }
  if (options.device_id && options.device_id->index < 0) {
    throw InvalidArgument("init_process_group: device_id " + to_string(*options.device_id) +
                          " has no index; give one, such as cuda:0");
  }
  if (options.timeout && options.timeout->count() <= 0) {
    throw InvalidArgument("init_process_group: the timeout has to be positive");
  }
}

void check_place(int rank, int size) {
  if (rank < size) return;
  throw InvalidArgument("init_process_group: rank " + std::to_string(rank) + " of a world of " + std::to_string(size) +
                        "; ranks are 0 to " + std::to_string(size - 1));
}

/// A second init over the same store must not meet the keys of the first: from then on the count is in the prefix.
std::string fresh_prefix(const std::string& base, int times_used) {
  return times_used == 0 ? base : base + "." + std::to_string(times_used);
}

Meeting meet_by_store(World::State& world, const InitOptions& options) {
  check_place(options.rank, options.world_size);
  auto& [known, times_used] = world.given_stores[options.store.get()];
  if (known.lock() != options.store) {
    known = options.store;
    times_used = 0;
  }
  std::shared_ptr<Store> store = options.store;
  if (times_used > 0) store = std::make_shared<PrefixStore>(fresh_prefix("again", times_used), store);
  ++times_used;
  return {store, options.rank, options.world_size};
}

Meeting meet_by_url(World::State& world, const InitOptions& options, Deadline deadline) {
  const std::string url = options.init_method.empty() ? "env://" : options.init_method;
  const auto plan = plan_rendezvous(url, options.rank, options.world_size, rendezvous_environment());
  check_place(plan.rank, plan.world_size);
  auto& met = world.met_stores[plan.place()];
  if (!met.store) met.store = open_store(plan, deadline);
  auto store = std::make_shared<PrefixStore>(fresh_prefix("default_pg", met.times_used), met.store);
  ++met.times_used;
  return {store, plan.rank, plan.world_size};
}

std::shared_ptr<ProcessGroup> make_default_group(const InitOptions& options, const Meeting& meeting,
                                                 std::chrono::milliseconds timeout, Deadline deadline) {
  GroupMaker::Plan plan;
  plan.group.name = "0";
  plan.group.desc = "default_pg";
  plan.group.backend_text = options.backend.empty() ? "undefined" : options.backend;
  plan.group.rank = meeting.rank;
  plan.group.global_ranks.resize(static_cast<std::size_t>(meeting.size));
  std::iota(plan.group.global_ranks.begin(), plan.group.global_ranks.end(), 0);
  plan.group.timeout = timeout;
  plan.group.store = std::make_shared<PrefixStore>(plan.group.name + "/", meeting.store);
  plan.group.bound_device = options.device_id;
  plan.backend = options.backend;
  plan.pg_options = options.pg_options;
  plan.call = "init_process_group";
  meeting.store->set_timeout(store_timeout(deadline));
  auto group = GroupMaker::make(std::move(plan), deadline);
  meeting.store->set_timeout(timeout);
  return group;
}

/// After a failure nobody knows what the connection to the store is in: the next init makes a new one, and counts on.
void forget_stores(World::State& world) {
  for (auto& [place, met] : world.met_stores) met.store.reset();
}

/// How ranks meet where a backend knows them by itself, as MPI does.
std::function<BackendTraits::Meeting(std::chrono::milliseconds)> own_meeting(const InitOptions& options) {
  for (const auto& [device, name] : parse_backend_string(options.backend)) {
    if (auto meet = find_backend(name).traits.meet) {
      if (options.rank >= 0 || options.world_size >= 0) {
        base::log::warning("init_process_group: rank and world_size are ignored: " + name + " assigns them");
      }
      return meet;
    }
  }
  return {};
}

/// Whether no backend has peers to meet.
bool is_alone(const InitOptions& options) {
  const auto by_device = parse_backend_string(options.backend);
  return std::all_of(by_device.begin(), by_device.end(),
                     [](const auto& pair) { return find_backend(pair.second).traits.has_no_peers; });
}

int integer_or(const char* variable, int otherwise) {
  return static_cast<int>(base::env_integer(variable).value_or(otherwise));
}

Meeting meet(World::State& world, const InitOptions& options, Deadline deadline) {
  if (const auto meet_by_backend = own_meeting(options)) {
    auto met = meet_by_backend(store_timeout(deadline));
    return {std::move(met.store), met.rank, met.size};
  }
  if (options.store) return meet_by_store(world, options);
  if (options.init_method.empty() && is_alone(options)) {
    const int rank = options.rank >= 0 ? options.rank : integer_or(base::env::kRank, 0);
    const int size = options.world_size > 0 ? options.world_size : integer_or(base::env::kWorldSize, rank + 1);
    check_place(rank, size);
    return {std::make_shared<HashStore>(), rank, size};
  }
  return meet_by_url(world, options, deadline);
}

}  // namespace

void init_process_group(const InitOptions& options) {
  World::State& world = World::current().state();
  if (world.default_group) {
    throw InvalidArgument("init_process_group: there is a default group already; destroy_process_group ends it");
  }
  check_arguments(options);
  parse_backend_string(options.backend);  // A misspelt name is told before anybody waits.
  const auto timeout = options.timeout.value_or(kDefaultGroupTimeout);
  const auto deadline = Deadline::after(timeout);
  try {
    const Meeting meeting = meet(world, options, deadline);
    world.meeting_store = meeting.store;
    world.default_group = make_default_group(options, meeting, timeout, deadline);
  } catch (...) {
    forget_stores(world);
    throw;
  }
}

void destroy_process_group(const Group& group) {
  World::State& world = World::current().state();
  if (group && !group->is_member()) return;
  if (!world.default_group) {
    throw InvalidArgument("destroy_process_group: there is no group; init_process_group makes one");
  }
  if (group && group != world.default_group) {
    const auto place = std::find(world.groups.begin(), world.groups.end(), group);
    if (place == world.groups.end()) {
      throw InvalidArgument("destroy_process_group: group " + group->name() + " is none of this process's");
    }
    world.groups.erase(place);
    group->shutdown();
    return;
  }
  end_all_groups(world);
}

}  // namespace tensorplay::distributed
