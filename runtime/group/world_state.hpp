/// What a World holds, for this folder.
#pragma once

#include "tensorplay/distributed/process_group.hpp"
#include "tensorplay/distributed/store.hpp"
#include "tensorplay/distributed/world.hpp"

#include <map>
#include <memory>
#include <string>

namespace tensorplay::distributed {

struct World::State {
  /// A store that was met through an init method. It is kept: rank 0 may host it, and the next init, which has to find
  /// a fresh name space there, counts on.
  struct MetStore {
    std::shared_ptr<Store> store;
    int times_used = 0;
  };

  std::shared_ptr<ProcessGroup> default_group;
  std::map<std::string, MetStore> met_stores;
  std::map<Store*, std::pair<std::weak_ptr<Store>, int>> given_stores;  ///< The user's own, with times used.
};

}  // namespace tensorplay::distributed
