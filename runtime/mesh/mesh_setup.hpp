/// What happens when a mesh is made: checks of what the caller gave, the exchange with the other ranks, the groups.
///
/// Thread rules and errors: those of DeviceMesh.
#pragma once

#include "runtime/mesh/grid.hpp"
#include "tensorplay/distributed/device_mesh.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tensorplay::distributed {

void check_device_type(const std::string& device_type);
void check_names(const std::vector<std::string>& names, std::size_t dimensions);

/// The backend of each dimension; empty: the default group's.
std::vector<std::string> backends_of(const DeviceMeshOptions& options, std::size_t dimensions);

Grid grid_of(const Tensor& mesh);

/// What all ranks have to agree on.
std::string description_of(const std::string& device_type, const Grid& grid, const std::vector<std::string>& names);

/// Every rank's host; throws when some rank describes another mesh than rank 0.
std::vector<std::int64_t> introduce(const std::string& description, const Group& world);

/// The default group, made by init_process_group where there is none.
Group ensure_world();

/// This rank's group out of `rows`, which all ranks make together. A row that is the whole world is the default group.
Group make_groups(const std::vector<std::vector<int>>& rows, const std::string& backend, const std::string& desc,
                  bool preserves_order);

}  // namespace tensorplay::distributed
