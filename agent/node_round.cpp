#include "agent/node_round.hpp"

#include "agent/environment_view.hpp"
#include "agent/error_file.hpp"
#include "agent/worker_environment.hpp"

#include <chrono>
#include <unistd.h>

namespace tensorplay::agent {

using rendezvous::WorkerFailure;

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

NodeRound::NodeRound(const LaunchPlan& plan, const rendezvous::StartOrder& order, WorkerOutput& output,
                     std::string host)
    : plan_(plan), order_(order), output_(output), host_(std::move(host)) {
  record_.round = order.round;
  record_.restart_count = order.restart_count;
  record_.world_size = order.world_size;
  record_.group_rank = order.group_rank;
  record_.group_world_size = order.group_world_size;
}

const std::vector<SpawnRequest>& NodeRound::prepare() {
  const EnvironmentView base(environ);
  const auto count = static_cast<std::size_t>(plan_.nproc_per_node);
  stdio_.reserve(count);
  requests_.reserve(count);
  for (int local_rank = 0; local_rank < plan_.nproc_per_node; ++local_rank) {
    const int rank = order_.first_rank + local_rank;
    const auto& stdio = stdio_.emplace_back(output_.open(order_.round, local_rank, rank));
    auto& request = requests_.emplace_back();
    request.argv = worker_argv(plan_, local_rank);
    request.environment = worker_environment(plan_, order_, local_rank, base, stdio.error_file);
    request.stdin_fd = stdio.in.get();
    request.stdout_fd = stdio.out.get();
    request.stderr_fd = stdio.err.get();
    if (!plan_.worker_cpus.empty()) {
      cpu_set_t cpus;
      CPU_ZERO(&cpus);
      for (const int cpu : plan_.worker_cpus.at(static_cast<std::size_t>(local_rank))) CPU_SET(cpu, &cpus);
      request.cpus = cpus;
    }
  }
  return requests_;
}

void NodeRound::started(const std::vector<pid_t>& pids) {
  requests_.clear();
  oom_.emplace();
  record_.started_at = unix_now();
  for (std::size_t i = 0; i < pids.size(); ++i) {
    auto& stdio = stdio_.at(i);
    stdio.in.reset();
    stdio.out.reset();
    stdio.err.reset();
    WorkerRecord worker;
    worker.local_rank = static_cast<int>(i);
    worker.rank = order_.first_rank + worker.local_rank;
    worker.pid = pids[i];
    worker.started_at = record_.started_at;
    worker.stdout_log = stdio.stdout_log;
    worker.stderr_log = stdio.stderr_log;
    record_.workers.push_back(std::move(worker));
  }
  stdio_.resize(pids.size());
}

WorkerEnded NodeRound::ended(const WorkerExit& exit) {
  auto& worker = record_.workers.at(static_cast<std::size_t>(exit.local_rank));
  worker.ended_at = exit.ended_at_unix;
  worker.exit_code = exit.exit_code;
  worker.signal = exit.signal;
  worker.stopped_by_us = exit.stopped_by_us;
  if (exit.exit_code == 0 && exit.signal == 0) return {true, {}};
  auto& failure = add_failure(exit.local_rank);
  failure.pid = exit.pid;
  failure.exit_code = exit.exit_code;
  failure.signal = exit.signal;
  failure.dumped_core = exit.dumped_core;
  failure.stopped_by_us = exit.stopped_by_us;
  failure.ended_at = exit.ended_at_unix;
  failure.runtime_seconds = std::chrono::duration<double>(exit.ended_at - exit.started_at).count();
  add_details(failure);
  std::vector<WorkerFailure> alone = {failure};
  if (!exit.stopped_by_us) mark_oom(alone, oom_->kills());
  return {false, alone.front()};
}

WorkerEnded NodeRound::not_started(int local_rank, const std::string& why, int exit_code) {
  auto& failure = add_failure(local_rank);
  failure.exit_code = exit_code;
  failure.is_startup_failure = true;
  failure.message = why;
  failure.ended_at = unix_now();
  return {false, failure};
}

std::vector<WorkerFailure> NodeRound::complete_failures() {
  for (auto& failure : failures_) {
    if (!failure.is_startup_failure) add_details(failure);
  }
  mark_oom(failures_, oom_->kills());
  record_.failures = failures_;
  return failures_;
}

WorkerFailure& NodeRound::add_failure(int local_rank) {
  auto& failure = failures_.emplace_back();
  failure.local_rank = local_rank;
  failure.rank = order_.first_rank + local_rank;
  failure.host = host_;
  return failure;
}

void NodeRound::add_details(WorkerFailure& failure) const {
  const auto& stdio = stdio_.at(static_cast<std::size_t>(failure.local_rank));
  failure.log_file = stdio.stderr_log;
  failure.last_lines = output_.last_lines(failure.local_rank);
  if (!stdio.error_file.empty()) add_error_file(failure, stdio.error_file);
}

}  // namespace tensorplay::agent
