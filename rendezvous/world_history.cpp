#include "rendezvous/world_history.hpp"

#include <algorithm>

namespace tensorplay::rendezvous {

void WorldHistory::started(const StartOrder& order) {
  if (!order.wants_confirmation) worlds_.clear();
  PastWorld world;
  world.epoch = order.epoch;
  world.round = order.round;
  world.restart_count = order.restart_count;
  world.group_rank = order.group_rank;
  world.group_world_size = order.group_world_size;
  world.recent_restarts = order.recent_restarts;
  world.fruitless_restarts = order.fruitless_restarts;
  world.is_confirmed = !order.wants_confirmation;
  worlds_.push_back(world);
}

void WorldHistory::confirmed(int round) {
  // The word is about the last start of the same leader: one that is late speaks of a world that is gone already.
  if (worlds_.empty() || worlds_.back().round != round) return;
  worlds_.erase(worlds_.begin(), worlds_.end() - 1);
  worlds_.back().is_confirmed = true;
}

}  // namespace tensorplay::rendezvous
