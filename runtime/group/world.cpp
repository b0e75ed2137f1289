#include "tensorplay/distributed/world.hpp"

#include "runtime/group/world_state.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tensorplay::distributed {
namespace {

thread_local World* t_bound = nullptr;

/// The process's World is never destroyed: at exit peers, stores and threads are in no known state, and the kernel
/// closes the connections. A job that forgot destroy_process_group is told so.
World& process_world() {
  static World* const instance = [] {
    auto* world = new World;
    static World* const watched = world;
    std::atexit([] {
      if (watched->default_group() != nullptr) {
        std::fputs("tensorplay: the process ends without destroy_process_group()\n", stderr);
      }
    });
    return world;
  }();
  return *instance;
}

}  // namespace

World::World() : state_(std::make_unique<State>()) {}

World::~World() {
  end_all_groups(*state_);
}

void end_all_groups(World::State& world) {
  const auto groups = std::exchange(world.groups, {});
  const auto default_group = std::exchange(world.default_group, nullptr);
  world.meeting_store.reset();
  world.groups_named = 0;
  world.uses_of_name.clear();
  // Every rank ends them in the same order.
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) (*group)->shutdown();
  if (default_group) default_group->shutdown();
}

World& World::current() {
  return t_bound != nullptr ? *t_bound : process_world();
}

World::Binding::Binding(World& world) noexcept : previous_(t_bound) {
  t_bound = &world;
}
World::Binding::~Binding() {
  t_bound = previous_;
}

const std::shared_ptr<ProcessGroup>& World::default_group() const noexcept {
  return state_->default_group;
}

}  // namespace tensorplay::distributed
