/// Every environment variable that tprun or the runtime reads or sets has its name here, and its line in
/// docs/environment.md; those of batch schedulers stand in agent/scheduler/variables.hpp. What the agent gives a worker
/// has torchrun's name; a knob that torch spells TORCH_X has a twin TP_X that wins.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tensorplay::base {

namespace env {
// Given to each worker by the agent.
inline constexpr const char* kRank = "RANK";
inline constexpr const char* kLocalRank = "LOCAL_RANK";
inline constexpr const char* kGroupRank = "GROUP_RANK";
inline constexpr const char* kRoleRank = "ROLE_RANK";
inline constexpr const char* kRoleName = "ROLE_NAME";
inline constexpr const char* kLocalWorldSize = "LOCAL_WORLD_SIZE";
inline constexpr const char* kWorldSize = "WORLD_SIZE";
inline constexpr const char* kGroupWorldSize = "GROUP_WORLD_SIZE";
inline constexpr const char* kRoleWorldSize = "ROLE_WORLD_SIZE";
inline constexpr const char* kMasterAddr = "MASTER_ADDR";
inline constexpr const char* kMasterPort = "MASTER_PORT";
inline constexpr const char* kRestartCount = "TORCHELASTIC_RESTART_COUNT";
inline constexpr const char* kMaxRestarts = "TORCHELASTIC_MAX_RESTARTS";
inline constexpr const char* kRunId = "TORCHELASTIC_RUN_ID";
inline constexpr const char* kUseAgentStore = "TORCHELASTIC_USE_AGENT_STORE";
inline constexpr const char* kErrorFile = "TORCHELASTIC_ERROR_FILE";
inline constexpr const char* kNcclAsyncErrorHandling = "TORCH_NCCL_ASYNC_ERROR_HANDLING";
inline constexpr const char* kOmpNumThreads = "OMP_NUM_THREADS";
inline constexpr const char* kCudaVisibleDevices = "CUDA_VISIBLE_DEVICES";
inline constexpr const char* kHipVisibleDevices = "HIP_VISIBLE_DEVICES";
inline constexpr const char* kRocrVisibleDevices = "ROCR_VISIBLE_DEVICES";
inline constexpr const char* kZeAffinityMask = "ZE_AFFINITY_MASK";
inline constexpr const char* kSignalsToHandle = "TORCHELASTIC_SIGNALS_TO_HANDLE";
inline constexpr const char* kWorkerMark = "TPRUN_WORKER";
inline constexpr const char* kRdzvToken = "TPRUN_RDZV_TOKEN";
inline constexpr const char* kTimerFile = "TORCHELASTIC_TIMER_FILE";

// Read by the agent.
inline constexpr const char* kPythonExec = "PYTHON_EXEC";
inline constexpr const char* kVirtualEnv = "VIRTUAL_ENV";
inline constexpr const char* kCondaPrefix = "CONDA_PREFIX";
inline constexpr const char* kPath = "PATH";
inline constexpr const char* kLogLevel = "LOGLEVEL";
inline constexpr const char* kLogLinePrefixTemplate = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
inline constexpr const char* kShutdownTimeout = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
inline constexpr const char* kDisableShareStore = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE";
inline constexpr const char* kEnableFileTimer = "TORCHELASTIC_ENABLE_FILE_TIMER";
inline constexpr const char* kNoColor = "NO_COLOR";
inline constexpr const char* kUninterruptibleTimeout = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT";

// Read by the runtime.
inline constexpr const char* kCppLogLevel = "TORCH_CPP_LOG_LEVEL";
inline constexpr const char* kDistributedDebug = "TORCH_DISTRIBUTED_DEBUG";
inline constexpr const char* kGlooSocketIfname = "GLOO_SOCKET_IFNAME";
inline constexpr const char* kBackendPlugins = "TP_BACKEND_PLUGINS";
inline constexpr const char* kSpawnCall = "TP_SPAWN_CALL";
}  // namespace env

/// The variable's value; nullopt when unset. An empty value is a value.
std::optional<std::string> env_value(const std::string& name);

/// The value of a TORCH_* knob or of its TP_* twin, which wins. An empty value counts as unset.
std::optional<std::string> env_knob(std::string_view torch_name);

/// The same as an integer; throws InvalidArgument naming the variable when the value is not one.
std::optional<long> env_integer(const std::string& name);

}  // namespace tensorplay::base
