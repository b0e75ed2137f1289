#pragma once

#include "tensorplay/distributed/backend.hpp"
#include "tensorplay/distributed/device.hpp"
#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/store.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::distributed {

/// Ranks that communicate with each other: a map from device type to the backend that serves its tensors.
///
/// Made by init_process_group, new_group and their kin; held by shared_ptr. A third-party backend may derive from it
/// and bring a whole group of its own. A group that is destroyed while an exception unwinds writes the error file for
/// the agent before it closes its connections, so that its peers, whose connections break then, are never taken for the
/// cause.
/// Thread rules: every method may be called from any thread.
class TP_API ProcessGroup {
 public:
  struct Options {
    std::string name = {};
    std::string backend_text = {};       ///< As the user gave it: "gloo", "cpu:gloo,cuda:nccl".
    int rank = 0;                        ///< Of this process in the group; -1: no member.
    std::vector<int> global_ranks = {};  ///< Global rank of each member.
    std::chrono::milliseconds timeout{0};
    std::shared_ptr<Store> store = {};
    std::string desc = {};  ///< For people: "default_pg", "undefined", "mesh_dp".
    std::optional<Device> bound_device = {};
  };

  explicit ProcessGroup(Options options);
  explicit ProcessGroup(const BackendOptions& options);  ///< For a creator that brings a whole group.
  virtual ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  const std::string& name() const noexcept { return options_.name; }
  const std::string& desc() const noexcept { return options_.desc; }
  const std::string& backend_text() const noexcept { return options_.backend_text; }
  int rank() const noexcept { return options_.rank; }
  int size() const noexcept { return static_cast<int>(options_.global_ranks.size()); }
  bool is_member() const noexcept { return options_.rank >= 0; }
  const std::vector<int>& global_ranks() const noexcept { return options_.global_ranks; }
  std::chrono::milliseconds timeout() const noexcept { return options_.timeout; }
  const std::optional<Device>& bound_device() const noexcept { return options_.bound_device; }

  /// The group's rank of a global rank and the reverse; InvalidArgument for one that is not a member.
  int group_rank_of(int global_rank) const;
  int global_rank_of(int group_rank) const;

  /// The backend for tensors of that device; InvalidArgument that lists what there is when there is none.
  virtual Backend& backend_for(DeviceType device) const;
  void set_backend(DeviceType device, std::shared_ptr<Backend> backend);
  const std::map<DeviceType, std::shared_ptr<Backend>>& backends() const noexcept { return backends_; }

  /// "cpu:gloo,cuda:nccl"
  std::string backend_config() const;

  /// A name space of the members' store for the user's own keys.
  std::shared_ptr<Store> store() const;

  /// The limit of later operations that are given none.
  void set_timeout(std::chrono::milliseconds timeout);

  /// Ends the group's operations and closes its connections, in bounded time, whatever the peers do. Idempotent.
  void shutdown();
  void abort(const std::string& why);

 private:
  friend class GroupMaker;  // Completes what a third party's creator left open.

  Options options_;
  std::map<DeviceType, std::shared_ptr<Backend>> backends_;
};

}  // namespace tensorplay::distributed
