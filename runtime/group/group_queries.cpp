/// Asking groups: who is in, under which rank, on which backend.
#include "runtime/base/environment.hpp"
#include "runtime/group/backend_registry.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/groups.hpp"
#include "tensorplay/distributed/world.hpp"

#include <utility>

namespace tensorplay::distributed {
namespace {

ProcessGroup& resolve(const Group& group) {
  if (group) return *group;
  return *get_default_group();
}

ProcessGroup& resolve_member(const Group& group, const char* call) {
  ProcessGroup& resolved = resolve(group);
  if (!resolved.is_member()) throw InvalidArgument(std::string(call) + ": this rank is no member of the group");
  return resolved;
}

}  // namespace

const Group GroupMember::WORLD;
const Group GroupMember::NON_GROUP_MEMBER =
    std::make_shared<ProcessGroup>(ProcessGroup::Options{.name = "non-member", .rank = -1, .desc = "non-member"});

bool is_available() noexcept {
  return true;
}

bool is_initialized() {
  return World::current().default_group() != nullptr;
}

bool is_gloo_available() {
  return is_backend_available("gloo");
}

bool is_mpi_available() {
  return is_backend_available("mpi");
}

bool is_nccl_available() {
  return is_backend_available("nccl");
}

bool is_xccl_available() {
  return is_backend_available("xccl");
}

bool is_ucc_available() {
  return is_backend_available("ucc");
}

bool is_torchelastic_launched() {
  return base::env_value(base::env::kRunId).has_value();
}

int get_rank(const Group& group) {
  return resolve(group).rank();
}

int get_world_size(const Group& group) {
  const ProcessGroup& resolved = resolve(group);
  return resolved.is_member() ? resolved.size() : -1;
}

std::string get_backend(const Group& group) {
  return resolve_member(group, "get_backend").backend_text();
}

std::string get_backend_config(const Group& group) {
  return resolve_member(group, "get_backend_config").backend_config();
}

int get_node_local_rank(std::optional<int> fallback) {
  if (const auto rank = base::env_integer(base::env::kLocalRank)) return static_cast<int>(*rank);
  if (fallback) return *fallback;
  throw InvalidArgument("get_node_local_rank: LOCAL_RANK is not set; tprun sets it, or give a fallback");
}

Group get_default_group() {
  if (const auto& group = World::current().default_group()) return group;
  throw InvalidArgument("there is no default group; call init_process_group first");
}

int get_group_rank(const Group& group, int global_rank) {
  return resolve_member(group, "get_group_rank").group_rank_of(global_rank);
}

int get_global_rank(const Group& group, int group_rank) {
  return resolve_member(group, "get_global_rank").global_rank_of(group_rank);
}

std::vector<int> get_process_group_ranks(const Group& group) {
  return resolve(group).global_ranks();
}

Backend& get_backend_impl(const Group& group, std::optional<Device> device) {
  const ProcessGroup& resolved = resolve_member(group, "get_backend_impl");
  if (device) return resolved.backend_for(device->type);
  Backend* only = nullptr;
  for (const auto& [type, backend] : resolved.backends()) {
    if (only != nullptr && only != backend.get()) {
      throw InvalidArgument("get_backend_impl: group " + resolved.name() + " has several backends, " +
                            resolved.backend_config() + "; give the device");
    }
    only = backend.get();
  }
  if (only == nullptr) return resolved.backend_for(DeviceType::kCPU);
  return *only;
}

std::string get_default_backend_for_device(const Device& device) {
  const std::string name = device.is_cpu() ? "gloo" : device.type == DeviceType::kCUDA ? "nccl" : "xccl";
  find_backend(name);
  return name;
}

void set_timeout(std::chrono::milliseconds timeout, const Group& group) {
  resolve_member(group, "set_timeout").set_timeout(timeout);
}

}  // namespace tensorplay::distributed
