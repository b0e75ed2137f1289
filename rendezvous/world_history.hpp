/// What an agent remembers of the worlds it was a member of: all that a later leader has to know, wherever it is.
#pragma once

#include "rendezvous/messages.hpp"

#include <vector>

namespace tensorplay::rendezvous {

/// Nothing that is kept can be left out: a leader that does not know of the last world could form one beside it. A
/// world that nobody can succeed, or that has been confirmed, makes those before it forgotten.
/// Thread rules: a value.
class WorldHistory {
 public:
  void started(const StartOrder& order);
  void confirmed(int round);

  /// Oldest first: the last confirmed one, if any, and those after it. Goes into Joined::past.
  const std::vector<PastWorld>& worlds() const { return worlds_; }

 private:
  std::vector<PastWorld> worlds_;
};

}  // namespace tensorplay::rendezvous
