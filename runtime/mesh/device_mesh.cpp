#include "tensorplay/distributed/device_mesh.hpp"

#include "runtime/mesh/grid.hpp"
#include "runtime/mesh/mesh_setup.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

namespace tensorplay::distributed {

/// The whole mesh, which its slices keep alive.
struct DeviceMesh::Root {
  std::string device_type;
  Grid grid;
  std::vector<std::string> names;
  std::vector<Group> groups;  // One for each dimension.
  bool preserves_order = false;
  int global_rank = 0;
  std::optional<std::vector<int>> coordinate;
  std::vector<std::int64_t> hosts;  // By global rank; empty when nobody asked.

  /// Dimensions that were flattened together, by the name they got.
  struct Flattened {
    std::vector<std::size_t> dims;
    Group group;
  };
  mutable std::mutex mutex;
  mutable std::map<std::string, Flattened> flattened;
};

/// Some of its dimensions; a flattened one stands for several of the root's.
struct DeviceMesh::View {
  struct Dimension {
    std::string name;
    std::vector<std::size_t> root_dims;
    Group group;
  };
  std::shared_ptr<const Root> root;
  std::vector<Dimension> dims;

  int size(std::size_t dim) const {
    int result = 1;
    for (const auto d : dims[dim].root_dims) result *= root->grid.shape[d];
    return result;
  }
  /// Place along a dimension.
  int place(std::size_t dim) const {
    int result = 0;
    for (const auto d : dims[dim].root_dims) result = result * root->grid.shape[d] + (*root->coordinate)[d];
    return result;
  }
  std::vector<std::size_t> all_root_dims() const {
    std::vector<std::size_t> result;
    for (const auto& dim : dims) result.insert(result.end(), dim.root_dims.begin(), dim.root_dims.end());
    return result;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& dim : dims) {
      if (!dim.name.empty()) result.push_back(dim.name);
    }
    return result;
  }
};

DeviceMesh::DeviceMesh(std::shared_ptr<const View> view) : view_(std::move(view)) {}

namespace {

/// All dimensions of a root.
std::shared_ptr<const DeviceMesh::View> whole(std::shared_ptr<const DeviceMesh::Root> root) {
  auto view = std::make_shared<DeviceMesh::View>();
  for (std::size_t i = 0; i < root->grid.shape.size(); ++i) {
    view->dims.push_back({root->names.empty() ? "" : root->names[i], {i}, root->groups[i]});
  }
  view->root = std::move(root);
  return view;
}

}  // namespace

DeviceMesh::DeviceMesh(const std::string& device_type, const Tensor& mesh, const DeviceMeshOptions& options) {
  check_device_type(device_type);
  auto root = std::make_shared<Root>();
  root->device_type = device_type;
  root->grid = grid_of(mesh);
  root->names = options.mesh_dim_names;
  root->preserves_order = options.preserve_rank_order;
  check_names(root->names, root->grid.shape.size());
  const auto backends = backends_of(options, root->grid.shape.size());
  const Group world = ensure_world();
  const int most = *std::max_element(root->grid.ranks.begin(), root->grid.ranks.end());
  if (static_cast<int>(root->grid.ranks.size()) > world->size() || most >= world->size()) {
    throw InvalidArgument("Mesh should not be bigger than default world size " + std::to_string(world->size()) +
                          ", but found " + std::to_string(root->grid.ranks.size()) + " ranks!");
  }
  root->hosts = introduce(description_of(device_type, root->grid, root->names), world);
  root->global_rank = world->rank();
  root->coordinate = root->grid.coordinate_of(world->rank());
  for (std::size_t i = 0; i < root->grid.shape.size(); ++i) {
    const auto desc = "mesh_" + (root->names.empty() ? "dim_" + std::to_string(i) : root->names[i]);
    root->groups.push_back(make_groups(root->grid.rows({i}), backends[i], desc, root->preserves_order));
  }
  view_ = whole(std::move(root));
}

DeviceMesh DeviceMesh::from_group(const Group& group, const std::string& device_type, const Tensor& mesh,
                                  const DeviceMeshOptions& options) {
  if (!group) throw InvalidArgument("Expects at least one ProcessGroup to be passed");
  std::vector<int> ranks = group->global_ranks();
  if (mesh.defined()) {
    const Grid grid = grid_of(mesh);
    if (grid.ndim() != 1 || grid.ranks != ranks) {
      throw InvalidArgument("Invalid mesh " + tensorplay::to_string(mesh) + " for ProcessGroup with ranks " +
                            tuple_text(ranks));
    }
  }
  std::vector<std::int64_t> wide(ranks.begin(), ranks.end());
  const Tensor line = Tensor::from_span(std::span(wide)).clone();
  return from_group(std::vector<Group>{group}, device_type, line, options);
}

DeviceMesh DeviceMesh::from_group(const std::vector<Group>& groups, const std::string& device_type, const Tensor& mesh,
                                  const DeviceMeshOptions& options) {
  check_device_type(device_type);
  if (groups.empty()) throw InvalidArgument("Expects at least one ProcessGroup to be passed");
  if (!mesh.defined()) throw InvalidArgument("Must pass mesh if passing multiple ProcessGroups");
  if (groups.size() > 1 && options.mesh_dim_names.empty()) {
    throw InvalidArgument("Must pass mesh_dim_names if passing multiple ProcessGroups");
  }
  auto root = std::make_shared<Root>();
  root->device_type = device_type;
  root->grid = grid_of(mesh);
  if (root->grid.shape.size() != groups.size()) {
    throw InvalidArgument("Expects mesh with ndim equal to number of ProcessGroups but got mesh " +
                          tensorplay::to_string(mesh) + " and " + std::to_string(groups.size()) + " ProcessGroups");
  }
  check_names(options.mesh_dim_names, root->grid.shape.size());
  root->names = options.mesh_dim_names;
  root->groups = groups;
  root->global_rank = get_default_group()->rank();
  root->coordinate = root->grid.coordinate_of(root->global_rank);
  for (std::size_t i = 0; root->coordinate && i < groups.size(); ++i) {
    auto row = root->grid.along({i}, *root->coordinate);
    auto members = groups[i]->global_ranks();
    std::sort(row.begin(), row.end());
    std::sort(members.begin(), members.end());
    if (row == members) continue;
    throw InvalidArgument("Invalid mesh " + tensorplay::to_string(mesh) + " for ProcessGroup with ranks " +
                          tuple_text(groups[i]->global_ranks()));
  }
  return DeviceMesh(whole(std::move(root)));
}

DeviceMesh DeviceMesh::slice(const std::vector<std::string>& names) const {
  const auto own = mesh_dim_names();
  if (own.empty()) throw InvalidArgument("Cannot slice a DeviceMesh without mesh_dim_names!");
  if (names == own) return *this;
  auto view = std::make_shared<View>();
  view->root = view_->root;
  std::set<std::size_t> taken;
  std::size_t last = 0;
  const std::lock_guard lock(view->root->mutex);
  for (const auto& name : names) {
    View::Dimension dimension;
    const auto found =
        std::find_if(view_->dims.begin(), view_->dims.end(), [&](const auto& dim) { return dim.name == name; });
    const auto flat = view->root->flattened.find(name);
    if (found != view_->dims.end()) {
      dimension = *found;
    } else if (flat != view->root->flattened.end()) {
      dimension = {name, flat->second.dims, flat->second.group};
    } else {
      auto valid = own;
      for (const auto& [other, ignored] : view->root->flattened) valid.push_back(other);
      throw InvalidArgument("Invalid mesh_dim_names " + tuple_text(names) + " specified. Valid mesh_dim_names are " +
                            tuple_text(valid) + ".");
    }
    for (const auto d : dimension.root_dims) {
      if (!taken.insert(d).second) {
        throw InvalidArgument("Slicing overlapping dim_names " + tuple_text(names) + " is not allowed.");
      }
    }
    if (!view->dims.empty() && dimension.root_dims.front() < last) {
      throw InvalidArgument("Invalid mesh_dim_names " + tuple_text(names) +
                            " specified. Mesh dim indices should be in ascending order.");
    }
    last = dimension.root_dims.back();
    view->dims.push_back(std::move(dimension));
  }
  if (view->dims.empty()) throw InvalidArgument("DeviceMesh: a slice needs at least one name");
  return DeviceMesh(std::move(view));
}

DeviceMesh DeviceMesh::flatten(const std::string& name) const {
  const auto own = mesh_dim_names();
  if (own.empty()) throw InvalidArgument("Cannot flatten a DeviceMesh without mesh_dim_names!");
  std::string joined = name;
  if (joined.empty()) {
    for (const auto& one : own) joined.append(joined.empty() ? "" : "_").append(one);
  }
  if (own.size() == 1 && own.front() == joined) return *this;
  const Root& root = *view_->root;
  if (std::find(root.names.begin(), root.names.end(), joined) != root.names.end()) {
    throw InvalidArgument(joined + " already exists for submesh of the " + to_string(DeviceMesh(whole(view_->root))) +
                          ". Please specify another valid mesh_dim_name.");
  }
  const auto dims = view_->all_root_dims();
  auto view = std::make_shared<View>();
  view->root = view_->root;
  {
    const std::lock_guard lock(root.mutex);
    if (const auto known = root.flattened.find(joined); known != root.flattened.end()) {
      if (known->second.dims != dims) {
        throw InvalidArgument("Flatten mesh with mesh_dim_name " + joined +
                              " has been created before, Please specify another valid mesh_dim_name.");
      }
      view->dims.push_back({joined, dims, known->second.group});
      return DeviceMesh(std::move(view));
    }
  }
  const Group group = make_groups(root.grid.rows(dims), "", "mesh_" + joined, root.preserves_order);
  const std::lock_guard lock(root.mutex);
  root.flattened[joined] = {dims, group};
  view->dims.push_back({joined, dims, group});
  return DeviceMesh(std::move(view));
}

std::size_t DeviceMesh::index_of(const MeshDim& dim) const {
  if (dim.index()) {
    const int index = *dim.index() < 0 ? *dim.index() + ndim() : *dim.index();
    if (index >= 0 && index < ndim()) return static_cast<std::size_t>(index);
    throw InvalidArgument("Mesh dimension " + std::to_string(*dim.index()) + " of a mesh with " +
                          std::to_string(ndim()) + " dimensions");
  }
  const auto names = mesh_dim_names();
  if (names.empty()) throw InvalidArgument("No `mesh_dim_names` found.");
  const auto found = std::find(names.begin(), names.end(), dim.name());
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw InvalidArgument("Mesh dimension '" + dim.name() +
                        "' does not exist. Available mesh dimensions are: " + "mesh_dim_names=" + tuple_text(names));
}

std::size_t DeviceMesh::the_only(const std::optional<MeshDim>& dim, const char* call) const {
  if (dim) return index_of(*dim);
  if (ndim() == 1) return 0;
  throw InvalidArgument(std::string(call) + ": Found the DeviceMesh have " + std::to_string(ndim()) +
                        " dimensions. Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.");
}

Group DeviceMesh::get_group(std::optional<MeshDim> dim) const {
  const auto index = the_only(dim, "get_group");
  if (!view_->root->coordinate) {
    throw InvalidArgument("get_group: rank " + std::to_string(get_rank()) + " is not in the mesh");
  }
  return view_->dims[index].group;
}

std::vector<Group> DeviceMesh::get_all_groups() const {
  std::vector<Group> result;
  for (int i = 0; i < ndim(); ++i) result.push_back(get_group(i));
  return result;
}

int DeviceMesh::get_rank() const {
  return view_->root->global_rank;
}

int DeviceMesh::get_local_rank(std::optional<MeshDim> dim) const {
  const auto index = the_only(dim, "get_local_rank");
  if (!view_->root->coordinate) {
    throw InvalidArgument("get_local_rank: rank " + std::to_string(get_rank()) + " is not in the mesh");
  }
  return view_->place(index);
}

std::optional<std::vector<int>> DeviceMesh::get_coordinate() const {
  if (!view_->root->coordinate) return std::nullopt;
  std::vector<int> result;
  for (std::size_t i = 0; i < view_->dims.size(); ++i) result.push_back(view_->place(i));
  return result;
}

int DeviceMesh::ndim() const noexcept {
  return static_cast<int>(view_->dims.size());
}

std::vector<int> DeviceMesh::shape() const {
  std::vector<int> result;
  for (std::size_t i = 0; i < view_->dims.size(); ++i) result.push_back(view_->size(i));
  return result;
}

int DeviceMesh::size(std::optional<MeshDim> dim) const {
  if (dim) return view_->size(index_of(*dim));
  const auto sizes = shape();
  return std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>());
}

Tensor DeviceMesh::mesh() const {
  const Root& root = *view_->root;
  const auto dims = view_->all_root_dims();
  const bool has_all = dims.size() == root.grid.shape.size();
  if (!has_all && !root.coordinate) {
    throw InvalidArgument(
        "In order to get the mesh Tensor of a DeviceMesh it needs to either have all its original dimensions or "
        "contain the local rank");
  }
  const auto ranks = root.grid.along(dims, has_all ? std::vector<int>(root.grid.shape.size(), 0) : *root.coordinate);
  Shape sizes;
  for (const int one : shape()) sizes.push_back(one);
  Tensor result = empty(sizes, DType::kInt64);
  std::copy(ranks.begin(), ranks.end(), result.data<std::int64_t>());
  return result;
}

const std::string& DeviceMesh::device_type() const noexcept {
  return view_->root->device_type;
}

std::vector<std::string> DeviceMesh::mesh_dim_names() const {
  return view_->names();
}

bool DeviceMesh::is_within_host(const MeshDim& dim) const {
  const Root& root = *view_->root;
  if (root.hosts.empty()) {
    throw InvalidArgument("is_within_host: hosts are known only to a mesh that made its groups, with a CPU backend");
  }
  return is_within(root.grid.rows(view_->dims[index_of(dim)].root_dims), root.hosts);
}

void DeviceMesh::abort() const {
  const Root& root = *view_->root;
  if (view_->all_root_dims().size() != root.grid.shape.size()) {
    throw InvalidArgument("abort() is not supported on a submesh. Call abort() on the root mesh instead.");
  }
  const std::lock_guard lock(root.mutex);
  for (const auto& group : root.groups) group->abort("the mesh was aborted");
  for (const auto& [name, flat] : root.flattened) flat.group->abort("the mesh was aborted");
}

bool DeviceMesh::operator==(const DeviceMesh& other) const {
  return device_type() == other.device_type() && mesh_dim_names() == other.mesh_dim_names() &&
         shape() == other.shape() && equal(mesh(), other.mesh());
}

DeviceMesh init_device_mesh(const std::string& device_type, const std::vector<int>& mesh_shape,
                            const DeviceMeshOptions& options) {
  check_names(options.mesh_dim_names, mesh_shape.size());
  backends_of(options, mesh_shape.size());
  check_device_type(device_type);
  Shape shape;
  std::int64_t count = 1;
  for (const int size : mesh_shape) {
    if (size <= 0) throw InvalidArgument("DeviceMesh: shape " + tuple_text(mesh_shape) + " has no ranks");
    shape.push_back(size);
    count *= size;
  }
  return DeviceMesh(device_type, arange(count).reshape(shape), options);
}

std::string to_string(const DeviceMesh& mesh) {
  const auto names = mesh.mesh_dim_names();
  const auto shape = mesh.shape();
  Grid grid;
  grid.shape = shape;
  std::string text = "DeviceMesh(";
  if (names.empty()) {
    text += tuple_text(shape);
  } else {
    std::vector<std::string> dims;
    for (std::size_t i = 0; i < names.size(); ++i) dims.push_back(names[i] + "=" + std::to_string(shape[i]));
    text += tuple_text(dims);
    if (dims.size() == 1) text.erase(text.size() - 2, 1);  // torch writes (dp=2) there.
  }
  return text + ", '" + mesh.device_type() + "', stride=" + tuple_text(grid.strides()) + ")";
}

}  // namespace tensorplay::distributed
