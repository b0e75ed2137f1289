#include "agent/worker_environment.hpp"

#include "agent/device_count.hpp"
#include "runtime/base/environment.hpp"

namespace tensorplay::agent {
namespace {

namespace env = base::env;

/// The entry of `list` (or the local rank itself, where no list narrows the devices) that a worker with a virtual local
/// rank is left with.
std::string own_device(const std::optional<std::string_view>& list, int local_rank) {
  if (!list) return std::to_string(local_rank);
  const auto entries = visible_entries(*list);
  const auto index = static_cast<std::size_t>(local_rank);
  return index < entries.size() ? std::string(entries[index]) : std::string();
}

void add_devices(std::map<std::string, std::string>& out, const LaunchPlan& plan, int local_rank,
                 const EnvironmentView& base) {
  if (!plan.virtual_local_rank) return;
  const auto hip = base.find(env::kHipVisibleDevices);
  const auto list = hip ? hip : base.find(env::kCudaVisibleDevices);
  const std::string device = own_device(list, local_rank);
  out[env::kCudaVisibleDevices] = device;
  if (hip) out[env::kHipVisibleDevices] = device;
}

}  // namespace

std::map<std::string, std::string> worker_additions(const LaunchPlan& plan, const rendezvous::StartOrder* order,
                                                    int local_rank, const EnvironmentView& base,
                                                    const std::optional<std::string>& error_file) {
  std::map<std::string, std::string> out;
  out[env::kLocalRank] = plan.virtual_local_rank ? "0" : std::to_string(local_rank);
  out[env::kLocalWorldSize] = std::to_string(plan.nproc_per_node);
  out[env::kRoleName] = plan.role;
  out[env::kMaxRestarts] = std::to_string(plan.max_restarts);
  out[env::kRunId] = plan.rdzv.run_id;
  out[env::kUseAgentStore] = plan.shares_agent_store ? "True" : "False";
  out[env::kSignalsToHandle] = plan.signals_to_handle;
  out[env::kNcclAsyncErrorHandling] = std::string(base.find(env::kNcclAsyncErrorHandling).value_or("1"));
  if (const auto threads = base.find(env::kOmpNumThreads)) {
    out[env::kOmpNumThreads] = std::string(*threads);
  } else if (plan.nproc_per_node > 1) {
    out[env::kOmpNumThreads] = "1";
  }
  add_devices(out, plan, local_rank, base);
  if (error_file) out[env::kErrorFile] = *error_file;
  if (order == nullptr) return out;

  out[env::kRank] = std::to_string(order->first_rank + local_rank);
  out[env::kGroupRank] = std::to_string(order->group_rank);
  out[env::kRoleRank] = std::to_string(order->first_role_rank + local_rank);
  out[env::kWorldSize] = std::to_string(order->world_size);
  out[env::kGroupWorldSize] = std::to_string(order->group_world_size);
  out[env::kRoleWorldSize] = std::to_string(order->role_world_size);
  out[env::kRestartCount] = std::to_string(order->restart_count);
  if (!order->master_addr.empty()) out[env::kMasterAddr] = order->master_addr;
  if (order->master_port != 0) out[env::kMasterPort] = std::to_string(order->master_port);
  return out;
}

std::vector<std::string> worker_environment(const LaunchPlan& plan, const rendezvous::StartOrder& order, int local_rank,
                                            const EnvironmentView& base, const std::string& error_file) {
  const auto additions = worker_additions(plan, &order, local_rank, base, error_file);
  std::vector<std::string> environment;
  environment.reserve(base.entries().size() + additions.size());
  for (const std::string_view entry : base.entries()) {
    const auto equals = entry.find('=');
    const std::string name(entry.substr(0, equals));
    if (equals != std::string_view::npos && additions.contains(name)) continue;
    if (name == env::kWorkerMark) continue;  // An outer tprun's: this worker gets one of its own.
    if (name == env::kRdzvToken) continue;   // The agents' secret, which programs like to log with all the rest.
    environment.emplace_back(entry);
  }
  for (const auto& [name, value] : additions) environment.push_back(name + "=" + value);
  return environment;
}

std::string substitute_local_rank(std::string_view word, int local_rank) {
  constexpr std::string_view kName = "local_rank";
  const auto continues_name = [](char letter) {
    return letter == '_' || (letter >= '0' && letter <= '9') || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z');
  };
  /// Length of "local_rank" or "{local_rank}" at the start of `text`, else 0.
  const auto name_length = [&](std::string_view text) -> std::size_t {
    if (text.starts_with("{local_rank}")) return kName.size() + 2;
    if (!text.starts_with(kName)) return 0;
    return text.size() > kName.size() && continues_name(text[kName.size()]) ? 0 : kName.size();
  };
  std::string out;
  out.reserve(word.size());
  while (!word.empty()) {
    const auto dollar = word.find('$');
    out += word.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    word.remove_prefix(dollar);
    if (word.starts_with("$$")) {
      // A dollar sign before the name is how the name itself is written; elsewhere it may be a shell's process id.
      const std::size_t length = name_length(word.substr(2));
      out += length > 0 ? word.substr(1, length + 1) : word.substr(0, 2);
      word.remove_prefix(2 + length);
    } else if (const std::size_t length = name_length(word.substr(1)); length > 0) {
      out += std::to_string(local_rank);
      word.remove_prefix(1 + length);
    } else {
      out += '$';
      word.remove_prefix(1);
    }
  }
  return out;
}

std::vector<std::string> worker_argv(const LaunchPlan& plan, int local_rank) {
  const ProgramPlan& program = plan.program;
  std::vector<std::string> words;
  words.reserve(program.argv.size() + 1);
  for (std::size_t i = 0; i < program.argv.size(); ++i) {
    if (i == program.first_argument && program.appends_local_rank) {
      words.push_back("--local-rank=" + std::to_string(local_rank));
    }
    words.push_back(i == 0 ? program.argv[i] : substitute_local_rank(program.argv[i], local_rank));
  }
  if (program.appends_local_rank && program.first_argument >= program.argv.size()) {
    words.push_back("--local-rank=" + std::to_string(local_rank));
  }
  return words;
}

}  // namespace tensorplay::agent
