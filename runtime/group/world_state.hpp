/// What a World holds, for this folder.
#pragma once

#include "tensorplay/distributed/process_group.hpp"
#include "tensorplay/distributed/store.hpp"
#include "tensorplay/distributed/world.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tensorplay::distributed {

struct World::State {
  /// A store that was met through an init method. It is kept: rank 0 may host it, and the next init, which has to find
  /// a fresh name space there, counts on.
  struct MetStore {
    std::shared_ptr<Store> store;
    int times_used = 0;
  };

  std::shared_ptr<ProcessGroup> default_group;
  std::vector<std::shared_ptr<ProcessGroup>> groups;  ///< The others that this rank is in, as they were made.

  /// Where groups meet, each in a name space of its name: what init_process_group met in, or what was left of it.
  std::shared_ptr<Store> meeting_store;

  /// Names come from what all who take part agree on: the calls of all ranks, or of one set of members, so far.
  int groups_named = 0;
  std::map<std::string, int> uses_of_name;

  std::map<std::string, MetStore> met_stores;
  std::map<Store*, std::pair<std::weak_ptr<Store>, int>> given_stores;  ///< The user's own, with times used.
};

/// Shuts every group down, the last made first, and forgets them.
void end_all_groups(World::State& world);

}  // namespace tensorplay::distributed
