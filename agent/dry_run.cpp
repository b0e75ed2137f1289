#include "agent/dry_run.hpp"

#include "agent/launch_request.hpp"
#include "agent/numa.hpp"
#include "agent/worker_environment.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace tensorplay::agent {
namespace {

/// The additions that are known: on one node nearly all of them, since nobody else has a say.
std::map<std::string, std::string> known_additions(const LaunchPlan& plan, int local_rank,
                                                   const EnvironmentView& environment) {
  rendezvous::StartOrder order;
  order.world_size = order.role_world_size = plan.nproc_per_node;
  order.master_addr = plan.master_addr;
  order.master_port = plan.master_port;
  const bool is_alone = plan.max_nodes == 1;
  auto additions = worker_additions(plan, is_alone ? &order : nullptr, local_rank, environment, std::nullopt);
  if (is_alone) return additions;
  additions["TORCHELASTIC_RESTART_COUNT"] = "0";
  if (plan.min_nodes == plan.max_nodes) additions["GROUP_WORLD_SIZE"] = std::to_string(plan.max_nodes);
  if (plan.rdzv.backend == "static") {
    additions["GROUP_RANK"] = std::to_string(plan.node_rank);
    additions["MASTER_ADDR"] = plan.master_addr;
    additions["MASTER_PORT"] = std::to_string(plan.master_port);
  }
  return additions;
}

bool is_bound(const LaunchPlan& plan, int local_rank) {
  return static_cast<std::size_t>(local_rank) < plan.worker_cpus.size();
}

std::string nodes_text(const LaunchPlan& plan) {
  const std::string least = std::to_string(plan.min_nodes);
  return plan.min_nodes == plan.max_nodes ? least : least + " to " + std::to_string(plan.max_nodes);
}

std::string streams_text(const StreamSelection& streams) {
  const auto name = [](StreamMask mask) {
    return std::string(mask == 3         ? "stdout and stderr"
                       : mask == kStdout ? "stdout"
                       : mask == kStderr ? "stderr"
                                         : "none");
  };
  if (streams.by_local_rank.empty()) return name(streams.all);
  std::string out;
  for (const auto& [rank, mask] : streams.by_local_rank) {
    out += (out.empty() ? "" : ", ") + name(mask) + " of local rank " + std::to_string(rank);
  }
  return out;
}

std::string seconds_text(std::chrono::milliseconds time) {
  std::string text = std::to_string(time.count() / 1000);
  if (time.count() % 1000 != 0) {
    char fraction[8];
    std::snprintf(fraction, sizeof fraction, ".%03d", static_cast<int>(time.count() % 1000));
    text += fraction;
  }
  return text + " s";
}

double in_seconds(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}

std::string restarts_text(const LaunchPlan& plan) {
  auto text = std::to_string(plan.max_restarts);
  if (plan.restart_window) text += " in any " + seconds_text(*plan.restart_window);
  if (plan.no_progress_limit > 0) {
    text += ", ends when " + std::to_string(plan.no_progress_limit) + " in a row fail within " +
            seconds_text(plan.progress_after);
  }
  return text;
}

nlohmann::json streams_json(const StreamSelection& streams) {
  if (streams.by_local_rank.empty()) return static_cast<int>(streams.all);
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [rank, mask] : streams.by_local_rank) out[std::to_string(rank)] = static_cast<int>(mask);
  return out;
}

}  // namespace

std::string shell_quoted(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+";
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char letter : word) out += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    out += '\'';
  }
  return out;
}

std::string dry_run_text(const LaunchPlan& plan, const EnvironmentView& environment) {
  std::string out;
  const auto line = [&out](const std::string& name, const std::string& value) {
    out += name + std::string(name.size() < 18 ? 18 - name.size() : 1, ' ') + value + '\n';
  };
  line("program", plan.program.display_name);
  line(plan.program.startup_errno == 0 ? "chosen because" : "cannot be started", plan.program.reason);
  line("workers here", std::to_string(plan.nproc_per_node) + ", role " + plan.role);
  line("nodes",
       nodes_text(plan) + (plan.max_nodes == 1 ? "" : ", this one has node rank " + std::to_string(plan.node_rank)));
  if (!plan.scheduler.empty()) line(plan.scheduler.starts_with("--hosts") ? "hosts" : "scheduler", plan.scheduler);
  line("rendezvous",
       plan.rdzv.backend + " at " + (plan.rdzv.endpoint.empty() ? "a place of its own" : plan.rdzv.endpoint));
  for (const auto& [key, value] : plan.rdzv.conf) line("", key + "=" + value);
  line("run id", plan.rdzv.run_id);
  line("restarts", restarts_text(plan));
  line("grace", seconds_text(plan.shutdown_timeout) + " between the stop signal and SIGKILL");
  line("stop signals", plan.signals_to_handle);
  if (!plan.logging.log_dir.empty()) line("log folder", plan.logging.log_dir);
  if (plan.logging.redirects.all != 0 || !plan.logging.redirects.by_local_rank.empty()) {
    line("to files", streams_text(plan.logging.redirects));
  }
  if (plan.logging.tee.all != 0 || !plan.logging.tee.by_local_rank.empty()) {
    line("to both", streams_text(plan.logging.tee));
  }
  if (!plan.report_file.empty()) line("report", plan.report_file);
  for (const std::string& note : plan.notes) line("note", note);

  for (int rank = 0; rank < plan.nproc_per_node; ++rank) {
    out += "\nlocal rank " + std::to_string(rank);
    if (is_bound(plan, rank))
      out += ", bound to CPUs " + format_cpu_list(plan.worker_cpus[static_cast<std::size_t>(rank)]);
    out += "\n  " + shell_quoted(worker_argv(plan, rank)) + '\n';
    for (const auto& [name, value] : known_additions(plan, rank, environment)) {
      out += "    " + name + '=' + shell_quoted({value}) + '\n';
    }
  }
  return out;
}

std::string dry_run_json(const LaunchPlan& plan, const EnvironmentView& environment) {
  nlohmann::ordered_json out;
  out["program"] = plan.program.display_name;
  out["reason"] = plan.program.reason;
  out["startable"] = plan.program.startup_errno == 0;
  out["front"] = front_name(plan.front);
  out["min_nodes"] = plan.min_nodes;
  out["max_nodes"] = plan.max_nodes;
  out["nproc_per_node"] = plan.nproc_per_node;
  out["node_rank"] = plan.node_rank;
  out["role"] = plan.role;
  out["scheduler"] = plan.scheduler;
  out["hosts"] = plan.rdzv.hosts;
  out["rdzv_backend"] = plan.rdzv.backend;
  out["rdzv_endpoint"] = plan.rdzv.endpoint;
  out["rdzv_id"] = plan.rdzv.run_id;
  out["rdzv_conf"] = plan.rdzv.conf;
  out["master_addr"] = plan.master_addr;
  out["master_port"] = plan.master_port;
  out["local_addr"] = plan.local_addr;
  out["max_restarts"] = plan.max_restarts;
  out["restart_window"] =
      plan.restart_window ? nlohmann::ordered_json(in_seconds(*plan.restart_window)) : nlohmann::ordered_json();
  out["no_progress_limit"] = plan.no_progress_limit;
  out["progress_after"] = in_seconds(plan.progress_after);
  out["shutdown_timeout"] = in_seconds(plan.shutdown_timeout);
  out["signals_to_handle"] = plan.signals_to_handle;
  out["log_dir"] = plan.logging.log_dir;
  out["redirects"] = streams_json(plan.logging.redirects);
  out["tee"] = streams_json(plan.logging.tee);
  out["local_ranks_filter"] = plan.logging.local_ranks_filter;
  out["virtual_local_rank"] = plan.virtual_local_rank;
  out["leave_daemons"] = plan.leave_daemons;
  out["report"] = plan.report_file;
  out["notes"] = plan.notes;
  out["workers"] = nlohmann::ordered_json::array();
  for (int rank = 0; rank < plan.nproc_per_node; ++rank) {
    nlohmann::ordered_json worker;
    worker["local_rank"] = rank;
    worker["argv"] = worker_argv(plan, rank);
    worker["env"] = known_additions(plan, rank, environment);
    if (is_bound(plan, rank)) worker["cpus"] = plan.worker_cpus[static_cast<std::size_t>(rank)];
    out["workers"].push_back(std::move(worker));
  }
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace tensorplay::agent
