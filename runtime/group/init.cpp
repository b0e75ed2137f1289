#include "tensorplay/distributed/init.hpp"

#include "runtime/base/environment.hpp"
#include "runtime/group/backend_registry.hpp"
#include "runtime/group/backend_string.hpp"
#include "runtime/group/rendezvous.hpp"
#include "runtime/group/roll_call.hpp"
#include "runtime/group/world_state.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/prefix_store.hpp"

#include <map>
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

void make_backends(ProcessGroup& group, const InitOptions& options, const std::shared_ptr<Store>& store,
                   Deadline deadline) {
  std::map<std::string, std::shared_ptr<Backend>> made;  // One object for all devices of one backend.
  for (const auto& [device, name] : parse_backend_string(options.backend)) {
    auto& backend = made[name];
    if (!backend) {
      BackendOptions creation;
      creation.store = std::make_shared<PrefixStore>(std::string(to_string(device)) + "/", store);
      creation.rank = group.rank();
      creation.size = group.size();
      creation.timeout = group.timeout();
      creation.init_limit = store_timeout(deadline);
      creation.group_name = group.name();
      creation.global_ranks = group.global_ranks();
      creation.bound_device = options.device_id;
      backend = find_backend(name).create(creation);
      if (!backend) throw InvalidArgument("backend " + name + " says that this rank is no member of the default group");
    }
    group.set_backend(device, backend);
  }
}

std::shared_ptr<ProcessGroup> make_default_group(const InitOptions& options, const Meeting& meeting,
                                                 std::chrono::milliseconds timeout, Deadline deadline) {
  ProcessGroup::Options description;
  description.name = "0";
  description.backend_text = options.backend.empty() ? "undefined" : options.backend;
  description.rank = meeting.rank;
  description.global_ranks.resize(static_cast<std::size_t>(meeting.size));
  std::iota(description.global_ranks.begin(), description.global_ranks.end(), 0);
  description.timeout = timeout;
  description.store = std::make_shared<PrefixStore>(description.name + "/", meeting.store);
  meeting.store->set_timeout(store_timeout(deadline));

  RollCall roll_call(description.store, meeting.rank, meeting.size);
  roll_call.arrive("joined", "init_process_group", deadline);
  auto group = std::make_shared<ProcessGroup>(description);
  make_backends(*group, options, description.store, deadline);
  roll_call.arrive("connected", "init_process_group, connecting", deadline);
  meeting.store->set_timeout(timeout);
  return group;
}

/// After a failure nobody knows what the connection to the store is in: the next init makes a new one, and counts on.
void forget_stores(World::State& world) {
  for (auto& [place, met] : world.met_stores) met.store.reset();
}

ProcessGroup& resolve(const Group& group) {
  if (group) return *group;
  return *get_default_group();
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
    const Meeting meeting = options.store ? meet_by_store(world, options) : meet_by_url(world, options, deadline);
    world.default_group = make_default_group(options, meeting, timeout, deadline);
  } catch (...) {
    forget_stores(world);
    throw;
  }
}

void destroy_process_group(const Group& group) {
  World::State& world = World::current().state();
  if (!world.default_group) {
    throw InvalidArgument("destroy_process_group: there is no group; init_process_group makes one");
  }
  if (group && group != world.default_group) {
    throw InvalidArgument("destroy_process_group: group " + group->name() + " is none of this process's");
  }
  const auto ended = std::exchange(world.default_group, nullptr);
  ended->shutdown();
}

bool is_available() noexcept {
  return true;
}

bool is_initialized() {
  return World::current().default_group() != nullptr;
}

bool is_gloo_available() {
  return is_backend_available("gloo");
}

bool is_torchelastic_launched() {
  return base::env_value(base::env::kRunId).has_value();
}

int get_rank(const Group& group) {
  return resolve(group).rank();
}

int get_world_size(const Group& group) {
  return resolve(group).size();
}

std::string get_backend(const Group& group) {
  return resolve(group).backend_text();
}

std::string get_backend_config(const Group& group) {
  return resolve(group).backend_config();
}

int get_node_local_rank(std::optional<int> fallback) {
  if (const auto rank = base::env_integer(base::env::kLocalRank)) return static_cast<int>(*rank);
  if (fallback) return *fallback;
  throw InvalidArgument("get_node_local_rank: LOCAL_RANK is not set; tprun sets it, or give a fallback");
}

Group get_default_group() {
  if (const auto& group = World::current().default_group()) return group;
  throw InvalidArgument("there is no default group; call init_process_group first");
}

}  // namespace tensorplay::distributed
