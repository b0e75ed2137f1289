#include "runtime/mesh/mesh_setup.hpp"

#include "runtime/base/host.hpp"
#include "tensorplay/distributed/collectives.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/groups.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace tensorplay::distributed {
namespace {

std::int64_t hash_text(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3ULL;
  return static_cast<std::int64_t>(hash);
}

}  // namespace

std::vector<std::int64_t> introduce(const std::string& description, const Group& world) {
  if (!world->backends().contains(DeviceType::kCPU)) return {};
  const Tensor own = tensor<std::int64_t>({hash_text(description), hash_text(base::host_identity())});
  const Tensor all = empty({world->size() * 2}, DType::kInt64);
  all_gather_single(all, own, {.group = world});
  std::vector<std::int64_t> hosts;
  for (int rank = 0; rank < world->size(); ++rank) {
    const std::int64_t* said = all.data<std::int64_t>() + rank * 2;
    if (said[0] != all.data<std::int64_t>()[0]) {
      throw InvalidArgument("DeviceMesh: rank " + std::to_string(rank) + " describes another mesh than rank 0; rank " +
                            std::to_string(world->rank()) + " has " + description);
    }
    hosts.push_back(said[1]);
  }
  return hosts;
}

void check_device_type(const std::string& device_type) {
  if (device_type.empty() ||
      !std::all_of(device_type.begin(), device_type.end(), [](unsigned char c) { return std::isalpha(c) != 0; })) {
    throw InvalidArgument("Device type with index is not supported but got " + device_type +
                          ". If you maintained a Device, it's recommended to pass in its type.");
  }
  parse_device_type(device_type);
}

void check_names(const std::vector<std::string>& names, std::size_t dimensions) {
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size()) {
    throw InvalidArgument("Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names " +
                          tuple_text(names));
  }
  if (!names.empty() && names.size() != dimensions) {
    throw InvalidArgument("mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): " +
                          std::to_string(names.size()) + " and len(mesh_shape):" + std::to_string(dimensions) + ".");
  }
}

std::vector<std::string> backends_of(const DeviceMeshOptions& options, std::size_t dimensions) {
  std::vector<std::string> result(dimensions);
  std::vector<std::string> given_as(dimensions);
  std::string unknown;
  for (const auto& [key, backend] : options.backend_override) {
    const auto& names = options.mesh_dim_names;
    const auto found = std::find(names.begin(), names.end(), key);
    std::size_t dim = dimensions;
    if (found != names.end()) {
      dim = static_cast<std::size_t>(found - names.begin());
    } else if (!key.empty() && key.size() < 4 && key.find_first_not_of("0123456789") == std::string::npos) {
      dim = static_cast<std::size_t>(std::stoi(key));
    }
    if (dim >= dimensions) {
      unknown.append(unknown.empty() ? "" : ", ").append(key);
      continue;
    }
    if (!given_as[dim].empty()) {
      throw InvalidArgument("Found redundant dim index " + std::to_string(dim) + " and name " +
                            (options.mesh_dim_names.empty() ? key : options.mesh_dim_names[dim]) +
                            " in backend_override");
    }
    given_as[dim] = key;
    result[dim] = backend;
  }
  if (!unknown.empty()) {
    throw InvalidArgument("Found invalid keys in backend_override: got [" + unknown +
                          "], expected integers in range [0, " + std::to_string(dimensions) + ") or one of " +
                          tuple_text(options.mesh_dim_names));
  }
  return result;
}

Grid grid_of(const Tensor& mesh) {
  if (!mesh.defined()) throw InvalidArgument("The mesh argument is required.");
  if (!mesh.device().is_cpu() || (mesh.dtype() != DType::kInt64 && mesh.dtype() != DType::kInt32)) {
    throw InvalidArgument("DeviceMesh: `mesh` has to be an int32 or int64 tensor on the CPU");
  }
  Grid grid;
  for (const auto size : mesh.shape()) grid.shape.push_back(static_cast<int>(size));
  const Tensor flat = mesh.to(DType::kInt64).contiguous();
  for (const auto rank : flat.span<std::int64_t>()) grid.ranks.push_back(static_cast<int>(rank));
  check_grid(grid);
  return grid;
}

std::string description_of(const std::string& device_type, const Grid& grid, const std::vector<std::string>& names) {
  return device_type + " " + tuple_text(grid.shape) + " " + tuple_text(names) + " of ranks " + tuple_text(grid.ranks);
}

Group ensure_world() {
  if (!is_initialized()) init_process_group();
  return get_default_group();
}

Group make_groups(const std::vector<std::vector<int>>& rows, const std::string& backend, const std::string& desc,
                  bool preserves_order) {
  const Group world = get_default_group();
  std::vector<int> sorted = rows.front();
  std::sort(sorted.begin(), sorted.end());
  const bool is_world = sorted == world->global_ranks() && (!preserves_order || sorted == rows.front());
  if (is_world && backend.empty()) return world;
  if (backend.empty() && !preserves_order) return split_group({.split_ranks = rows, .group_desc = desc});
  Group mine = GroupMember::NON_GROUP_MEMBER;
  for (const auto& row : rows) {
    const Group made =
        new_group({.ranks = row, .backend = backend, .group_desc = desc, .sort_ranks = !preserves_order});
    if (made->is_member()) mine = made;
  }
  return mine;
}

}  // namespace tensorplay::distributed
