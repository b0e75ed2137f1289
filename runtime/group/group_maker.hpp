#pragma once

#include "tensorplay/distributed/deadline.hpp"
#include "tensorplay/distributed/process_group.hpp"

#include <memory>
#include <string>

namespace tensorplay::distributed {

/// Makes a group of ranks that have agreed on its name and its members: the roll call of all of them, the backends, and
/// a second roll call once everybody is connected.
class GroupMaker {
 public:
  struct Plan {
    ProcessGroup::Options group;  ///< Its store is the one where the members meet; nobody else uses it.
    std::string backend;          ///< "gloo", "cpu:gloo"; empty for the default one.
    std::shared_ptr<const PGOptions> pg_options;
    std::string call;  ///< The beginning of messages: "init_process_group".
  };

  /// DistStoreError at the deadline, naming who did not come, and what the backends throw.
  static std::shared_ptr<ProcessGroup> make(Plan plan, Deadline deadline);
};

}  // namespace tensorplay::distributed
