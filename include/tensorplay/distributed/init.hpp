/// Joining and leaving: init_process_group, destroy_process_group, and who am I.
#pragma once

#include "tensorplay/distributed/device.hpp"
#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/process_group.hpp"
#include "tensorplay/distributed/store.hpp"

#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <string>

namespace tensorplay::distributed {

using Group = std::shared_ptr<ProcessGroup>;

/// The default limit of init_process_group and of each operation.
inline constexpr std::chrono::milliseconds kDefaultGroupTimeout = std::chrono::minutes(30);

struct InitOptions {
  std::string backend = {};      ///< "gloo", "cpu:gloo"; empty: the default one of each device this machine has.
  std::string init_method = {};  ///< "env://", "tcp://HOST:PORT", "file:///PATH"; empty: env:// unless store is given.
  std::optional<std::chrono::milliseconds> timeout = {};
  int world_size = -1;                ///< -1: from the environment or the init method's query.
  int rank = -1;                      ///< Likewise.
  std::shared_ptr<Store> store = {};  ///< Instead of an init method; needs world_size and rank.
  std::string group_name = {};        ///< Ignored, as in torch.
  std::shared_ptr<const PGOptions> pg_options = {};
  std::optional<Device> device_id = {};
};

/// Makes the default group of the current World. Blocks until all ranks have joined and are connected: it returns on
/// no rank before every rank is here, whatever the method, the store and the backend.
///
/// One timeout covers reaching the store, the handshake and the wait for the others; the DistStoreError or
/// DistBackendError at its end names the ranks that are missing. InvalidArgument for arguments or environment
/// variables that are missing, contradict each other, or when there is a default group already.
///
/// env:// reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, which tprun sets. Rank 0 hosts the store, unless the
/// agent does (TORCHELASTIC_USE_AGENT_STORE is "True" and the address is MASTER_ADDR:MASTER_PORT).
/// Source: c10d's init_process_group, with a stronger promise.
TP_API void init_process_group(const InitOptions& options = {});

/// The same with the backend first: init_process_group("gloo").
template <std::convertible_to<std::string> Backend>
void init_process_group(const Backend& backend, InitOptions options = {}) {
  options.backend = backend;
  init_process_group(options);
}

/// Ends one group, or without one (or with the default one) every group, the last made first. Bounded in time, with
/// operations in flight or a dead peer too. Nothing happens for NON_GROUP_MEMBER; InvalidArgument when there is no such
/// group.
TP_API void destroy_process_group(const Group& group = {});

TP_API bool is_available() noexcept;  ///< Always: a build without the runtime has no such function.
TP_API bool is_initialized();
TP_API bool is_gloo_available();
TP_API bool is_mpi_available();
TP_API bool is_nccl_available();
TP_API bool is_xccl_available();
TP_API bool is_ucc_available();
TP_API bool is_torchelastic_launched();  ///< Whether an agent started this process.

/// The caller's rank in the group, and the group's size; no group: the default one. -1 for a group that the caller is
/// not in. InvalidArgument before init.
TP_API int get_rank(const Group& group = {});
TP_API int get_world_size(const Group& group = {});

/// The backend string that was given; get_backend_config spells it out: "cpu:gloo".
TP_API std::string get_backend(const Group& group = {});
TP_API std::string get_backend_config(const Group& group = {});

/// LOCAL_RANK, which tprun sets; else `fallback`; else InvalidArgument.
TP_API int get_node_local_rank(std::optional<int> fallback = std::nullopt);

/// The default group itself; InvalidArgument before init.
TP_API Group get_default_group();

}  // namespace tensorplay::distributed
