/// Groups along the dimensions of a grid of ranks.
///
///     auto mesh = init_device_mesh("cpu", {2, 4}, {.mesh_dim_names = {"dp", "tp"}});
///     all_reduce(gradient, {.group = mesh.get_group("dp")});
///     auto tp = mesh["tp"];                        // this rank's row; makes no group
///     auto both = mesh.flatten("all");             // one dimension of eight
///
/// Source of names, checks and texts: torch.distributed.device_mesh.
#pragma once

#include "tensorplay/distributed/device.hpp"
#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/init.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::distributed {

struct DeviceMeshOptions {
  std::vector<std::string> mesh_dim_names = {};
  /// Another backend for some dimensions, by name or by index ("0").
  std::map<std::string, std::string> backend_override = {};
  bool preserve_rank_order = false;  ///< Group ranks follow the mesh; default: sorted.
};

/// A dimension, by index (negative counts from the end) or by name.
class MeshDim {
 public:
  MeshDim(int index) : index_(index) {}              // NOLINT(google-explicit-constructor)
  MeshDim(const char* name) : name_(name) {}         // NOLINT(google-explicit-constructor)
  MeshDim(const std::string& name) : name_(name) {}  // NOLINT(google-explicit-constructor)
  const std::optional<int>& index() const noexcept { return index_; }
  const std::string& name() const noexcept { return name_; }

 private:
  std::optional<int> index_;
  std::string name_;
};

/// A grid of global ranks, or a part of one, with a group along each dimension.
///
/// A handle: copies and slices share the groups, which live as long as the default group. Making a mesh and flattening
/// are for all ranks of the default group, in the same order; everything else is local. Ranks that describe different
/// meshes are told so. A rank that is not in the mesh has no coordinate.
/// Thread rules: as for its groups. Errors: InvalidArgument with torch's text.
class TP_API DeviceMesh {
 public:
  /// `mesh`: an int32 or int64 tensor of global ranks on the CPU, each at most once. Initialises the package where it
  /// is not.
  DeviceMesh(const std::string& device_type, const Tensor& mesh, const DeviceMeshOptions& options = {});

  /// A mesh around groups that exist: one, or one for each dimension of `mesh`, which names all ranks.
  static DeviceMesh from_group(const Group& group, const std::string& device_type, const Tensor& mesh = {},
                               const DeviceMeshOptions& options = {});
  static DeviceMesh from_group(const std::vector<Group>& groups, const std::string& device_type, const Tensor& mesh,
                               const DeviceMeshOptions& options);

  /// This rank's part along some dimensions, in the mesh's order. A name may be that of a flattened dimension.
  DeviceMesh operator[](const char* name) const { return slice({name}); }
  DeviceMesh operator[](const std::vector<std::string>& names) const { return slice(names); }
  DeviceMesh slice(const std::vector<std::string>& names) const;

  /// All dimensions as one; the default name joins theirs with "_". Makes its groups once.
  DeviceMesh flatten(const std::string& name = {}) const;

  /// The group along a dimension; of a mesh with one dimension that one.
  Group get_group(std::optional<MeshDim> dim = std::nullopt) const;
  std::vector<Group> get_all_groups() const;

  int get_rank() const;                                                 ///< The global rank.
  int get_local_rank(std::optional<MeshDim> dim = std::nullopt) const;  ///< The place along a dimension.
  std::optional<std::vector<int>> get_coordinate() const;               ///< Null for a rank outside.

  int ndim() const noexcept;
  std::vector<int> shape() const;
  int size(std::optional<MeshDim> dim = std::nullopt) const;  ///< Ranks in all, or along one dimension.
  Tensor mesh() const;                                        ///< The global ranks, int64.
  const std::string& device_type() const noexcept;
  std::vector<std::string> mesh_dim_names() const;

  /// Whether in each group along the dimension all ranks are on one host (and share its loopback): true for the inner
  /// dimension of a (nodes, processes per node) mesh under tprun. Hosts tell each other who they are when the mesh is
  /// made.
  bool is_within_host(const MeshDim& dim) const;

  /// Aborts the groups that the mesh has made. Only of a whole mesh.
  void abort() const;

  /// The same ranks, shape, device type and names.
  bool operator==(const DeviceMesh& other) const;

  struct Root;
  struct View;

 private:
  explicit DeviceMesh(std::shared_ptr<const View> view);
  std::size_t index_of(const MeshDim& dim) const;
  std::size_t the_only(const std::optional<MeshDim>& dim, const char* call) const;

  std::shared_ptr<const View> view_;
};

/// A mesh of ranks 0, 1, ... in row-major order. `device_type` is "cpu", "cuda" or "xpu", without an index.
TP_API DeviceMesh init_device_mesh(const std::string& device_type, const std::vector<int>& mesh_shape,
                                   const DeviceMeshOptions& options = {});

/// "DeviceMesh((dp=2, tp=4), 'cpu', stride=(4, 1))"
TP_API std::string to_string(const DeviceMesh& mesh);

}  // namespace tensorplay::distributed
