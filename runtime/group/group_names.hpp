/// What groups are called, and what a new one takes over from another.
#pragma once

#include "runtime/group/world_state.hpp"

#include <string>
#include <vector>

namespace tensorplay::distributed {

/// The name of a group that all ranks make together: they count together.
std::string next_group_name(World::State& world);

/// The name of a group that its members make alone: from the members, and how often they have done so. The count of the
/// other names stays as it is.
std::string local_group_name(World::State& world, const std::vector<int>& ranks);

/// InvalidArgument for a backend text that parse_backend_string refuses.
void check_backend_text(const std::string& text);

/// The backend text of a part of `parent`: its own, or what `wanted` takes of it, which has to agree with the parent's.
std::string split_backend(const std::string& wanted, const ProcessGroup& parent);

}  // namespace tensorplay::distributed
