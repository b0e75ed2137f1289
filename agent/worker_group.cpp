#include "agent/worker_group.hpp"

#include "agent/child_news.hpp"
#include "agent/orphans.hpp"
#include "agent/process_freezer.hpp"
#include "agent/process_tree.hpp"
#include "agent/uninterruptible_watch.hpp"
#include "agent/worker_cgroup.hpp"
#include "runtime/base/environment.hpp"

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <signal.h>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <sys/wait.h>

namespace tensorplay::agent {

namespace {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

constexpr std::chrono::milliseconds kDestructorLimit{2'000};

enum class Phase {
  kIdle,  ///< No round.
  kRunning,
  kStopping,  ///< The stop signal has been sent; grace.
  kEnding,    ///< Grace is over: the workers have got SIGKILL, their helpers have their time.
  kKilling,   ///< SIGKILL to whatever is found, until nothing is.
};

struct Worker {
  pid_t pid = -1;
  bool live = false;
  bool stopped_by_us = false;
  bool ended_before_stop = false;
  bool clean = false;  ///< Ended, and nothing of it was found after its helpers' time.
  TimePoint started_at;
  TimePoint sweep_at;  ///< End of its helpers' time.
  std::unique_ptr<WorkerCgroup> cgroup;
};

std::vector<pid_t> live_pids(const std::vector<Worker>& workers) {
  std::vector<pid_t> pids;
  for (const Worker& worker : workers) {
    if (worker.live) pids.push_back(worker.pid);
  }
  return pids;
}

}  // namespace

struct WorkerGroup::Impl {
  Impl(asio::io_context& loop, WorkerGroupOptions options, Callbacks callbacks)
      : loop_(loop),
        options_(options),
        callbacks_(std::move(callbacks)),
        child_news_(loop, [this] { on_child_news(); }),
        timer_(loop) {}

  ~Impl() {
    *alive_ = false;
    if (phase_ == Phase::kIdle) return;
    kill_everything();
    end_all_children(std::chrono::milliseconds{0}, kDestructorLimit);
  }

  // ---- Events ---------------------------------------------------------------------------------------------------

  void on_child_news() {
    const auto alive = alive_;
    reap();
    if (*alive) advance();
  }

  void advance_soon() {
    asio::post(loop_, [this, alive = alive_] {
      if (*alive) advance();
    });
  }

  void arm_timer(TimePoint at) {
    timer_.expires_at(at);
    timer_.async_wait([this, alive = alive_](std::error_code error) {
      if (!error && *alive) advance();
    });
  }

  void reap() {
    std::vector<WorkerExit> exits;
    for (;;) {
      siginfo_t info{};
      if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0) {
        if (errno == EINTR) continue;
        break;
      }
      if (info.si_pid == 0) break;
      signalled_orphans_.erase(info.si_pid);
      const auto found = by_pid_.find(info.si_pid);
      if (found == by_pid_.end()) continue;
      exits.push_back(record_exit(found->second, info));
      by_pid_.erase(found);
    }
    const auto alive = alive_;
    for (const WorkerExit& exit : exits) {
      if (callbacks_.on_exit) callbacks_.on_exit(exit);
      if (!*alive) return;
    }
  }

  WorkerExit record_exit(int local_rank, const siginfo_t& info) {
    Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
    WorkerExit exit;
    exit.local_rank = local_rank;
    exit.pid = info.si_pid;
    (info.si_code == CLD_EXITED ? exit.exit_code : exit.signal) = info.si_status;
    exit.dumped_core = info.si_code == CLD_DUMPED;
    exit.stopped_by_us = worker.stopped_by_us;
    exit.started_at = worker.started_at;
    exit.ended_at = Clock::now();
    exit.ended_at_unix = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    worker.live = false;
    worker.ended_before_stop = phase_ == Phase::kRunning;
    worker.sweep_at = exit.ended_at + options_.helper_grace;
    --live_;
    all_well_ = all_well_ && exit.exit_code == 0 && exit.signal == 0;
    return exit;
  }

  // ---- What happens next ----------------------------------------------------------------------------------------

  /// Does all that is due, and arms the timer for what will be. The only place where phases end.
  void advance() {
    if (phase_ == Phase::kIdle) return;
    if (live_ == 0 && (may_leave_the_rest() || !has_children())) return finish();
    const TimePoint now = Clock::now();
    if (phase_ == Phase::kRunning && live_ == 0 && now >= last_sweep_time()) begin_killing(now);
    if (phase_ == Phase::kStopping && now >= stop_deadline_) kill_tops(now);
    if (phase_ == Phase::kEnding && now >= final_at_) begin_killing(now);
    if (phase_ == Phase::kKilling) {
      if (now >= give_up_at_) return give_up();
      kill_everything();
    } else {
      look_after_orphans(now);
    }
    arm_timer(next_time(now));
  }

  bool may_leave_the_rest() const { return options_.leave_daemons && all_well_ && phase_ == Phase::kRunning; }

  TimePoint last_sweep_time() const {
    TimePoint last = TimePoint::min();
    for (const Worker& worker : workers_) last = std::max(last, worker.sweep_at);
    return last;
  }

  TimePoint next_time(TimePoint now) const {
    if (phase_ == Phase::kKilling) return give_up_at_;
    if (phase_ == Phase::kEnding) return final_at_;
    TimePoint next = phase_ == Phase::kStopping ? stop_deadline_ : TimePoint::max();
    if (phase_ == Phase::kRunning && live_ == 0) next = last_sweep_time();
    for (const Worker& worker : workers_) {
      if (is_to_be_swept(worker) && worker.sweep_at > now) next = std::min(next, worker.sweep_at);
    }
    return next;
  }

  /// Ended by itself while others go on: its leftovers go when its helpers' time is over.
  bool is_to_be_swept(const Worker& worker) const {
    return !worker.live && worker.ended_before_stop && !worker.clean && !(options_.leave_daemons && all_well_);
  }

  void look_after_orphans(TimePoint now) {
    std::vector<bool> due(workers_.size(), false);
    bool any_due = false;
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      due[rank] = is_to_be_swept(workers_[rank]) && now >= workers_[rank].sweep_at;
      any_due = any_due || due[rank];
    }
    const bool passes_on = phase_ == Phase::kStopping && passes_on_ && live_ < workers_.size();
    if (!any_due && !passes_on) return;

    std::vector<bool> has_orphans(workers_.size(), false);
    for (const Orphan& orphan : orphans()) {
      const bool known = orphan.owner >= 0;
      const auto owner = static_cast<std::size_t>(std::max(orphan.owner, 0));
      if (known && due[owner]) {
        has_orphans[owner] = true;
        kill(orphan.pid, SIGKILL);
      } else if (passes_on && (live_ == 0 || (known && !workers_[owner].live && !workers_[owner].ended_before_stop))) {
        if (signalled_orphans_.insert(orphan.pid).second) signal_and_wake(orphan.pid, stop_signal_);
      }
    }
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      if (!due[rank]) continue;
      if (workers_[rank].cgroup) workers_[rank].cgroup->kill();
      workers_[rank].clean = !has_orphans[rank];
    }
  }

  std::vector<Orphan> orphans() const {
    std::vector<WorkerTrace> traces;
    traces.reserve(workers_.size());
    for (const Worker& worker : workers_) traces.push_back({worker.pid, worker.live, worker.cgroup.get()});
    return find_orphans(traces, mark_prefix_);
  }

  /// The end of grace: SIGKILL to the workers, and to what stands in for one that has ended. Their helpers, which see
  /// them end, have their time first.
  void kill_tops(TimePoint now) {
    phase_ = Phase::kEnding;
    final_at_ = now + options_.helper_grace;
    for (const Orphan& orphan : orphans()) {
      const bool spared = orphan.owner >= 0 && !workers_[static_cast<std::size_t>(orphan.owner)].live &&
                          workers_[static_cast<std::size_t>(orphan.owner)].sweep_at > now;
      if (!spared) kill(orphan.pid, SIGKILL);
    }
    signal_live(SIGKILL);
  }

  void begin_killing(TimePoint now) {
    phase_ = Phase::kKilling;
    give_up_at_ = now + options_.kill_limit;
    for (Worker& worker : workers_) worker.stopped_by_us = true;
  }

  void kill_everything() {
    for (const Worker& worker : workers_) {
      if (worker.cgroup) worker.cgroup->kill();
    }
    kill_children();
  }

  void give_up() {
    const auto alive = alive_;
    report_unkillable(remaining_children());
    if (*alive) finish();
  }

  /// A worker hangs in uninterruptible sleep: the round ends, and the caller knows why.
  void give_up_on(pid_t pid) {
    const auto stat = read_process_stat(pid);
    const auto alive = alive_;
    report_unkillable({{pid, stat ? stat->name : "", 'D', "it has hung for too long; ending the job"}});
    if (*alive) kill_now();
  }

  void report_unkillable(const std::vector<Unkillable>& left) const {
    if (callbacks_.on_unkillable) callbacks_.on_unkillable(left);
  }

  void finish() {
    phase_ = Phase::kIdle;
    timer_.cancel();
    uninterruptible_watch_.reset();
    workers_.clear();
    by_pid_.clear();
    signalled_orphans_.clear();
    freezer_.thaw();
    live_ = 0;
    if (callbacks_.on_gone) callbacks_.on_gone();
  }

  // ---- Requests -------------------------------------------------------------------------------------------------

  void start(const std::vector<SpawnRequest>& requests) {
    if (!looked_for_cgroup_) cgroups_ = CgroupTree::make();
    looked_for_cgroup_ = true;
    ++round_;
    if (options_.uninterruptible_limit.count() > 0) {
      uninterruptible_watch_.emplace(
          loop_, options_.uninterruptible_limit, [this] { return live_pids(workers_); },
          [this](pid_t pid) { give_up_on(pid); });
    }
    mark_prefix_ = std::to_string(getpid()) + "." + std::to_string(round_) + ".";
    phase_ = Phase::kRunning;
    all_well_ = true;
    live_ = 0;
    workers_.clear();
    workers_.resize(requests.size());
    try {
      for (std::size_t rank = 0; rank < requests.size(); ++rank) start_one(rank, requests[rank]);
    } catch (const StartupFailure&) {
      workers_.resize(live_);
      all_well_ = false;
      kill_now();
      throw;
    }
  }

  void start_one(std::size_t rank, SpawnRequest request) {
    Worker& worker = workers_[rank];
    if (cgroups_) worker.cgroup = cgroups_->make_worker_cgroup(round_, static_cast<int>(rank));
    if (worker.cgroup) request.cgroup_fd = worker.cgroup->fd();
    request.environment.push_back(std::string(base::env::kWorkerMark) + "=" + mark_prefix_ + std::to_string(rank));
    worker.started_at = Clock::now();
    worker.pid = spawn_worker(request);
    worker.live = true;
    by_pid_[worker.pid] = static_cast<int>(rank);
    ++live_;
  }

  void stop(int signal, std::chrono::milliseconds grace, bool already_signalled) {
    if (live_ == 0 || (phase_ != Phase::kRunning && phase_ != Phase::kStopping)) return;
    const TimePoint deadline = Clock::now() + grace;
    stop_deadline_ = phase_ == Phase::kStopping ? std::min(stop_deadline_, deadline) : deadline;
    phase_ = Phase::kStopping;
    stop_signal_ = signal;
    passes_on_ = !already_signalled;
    for (Worker& worker : workers_) worker.stopped_by_us |= worker.live;
    if (!already_signalled) signal_live(signal);
    freezer_.thaw();
    advance_soon();
  }

  void kill_now() {
    if (phase_ == Phase::kIdle) return;
    if (phase_ != Phase::kKilling) begin_killing(Clock::now());
    kill_everything();
    advance_soon();
  }

  void signal_live(int signal) {
    for (const Worker& worker : workers_) {
      if (worker.live) signal_and_wake(worker.pid, signal);
    }
  }

  void notify(int signal) {
    if (signal == SIGTSTP) return phase_ == Phase::kRunning ? freezer_.freeze_descendants() : void();
    if (signal == SIGCONT) return freezer_.thaw();
    for (const Worker& worker : workers_) {
      if (worker.live) kill(worker.pid, signal);
    }
  }

  asio::io_context& loop_;
  const WorkerGroupOptions options_;
  const Callbacks callbacks_;
  ChildNews child_news_;
  asio::steady_timer timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  Phase phase_ = Phase::kIdle;
  int round_ = 0;
  std::string mark_prefix_;
  bool looked_for_cgroup_ = false;
  std::unique_ptr<CgroupTree> cgroups_;  ///< Before workers_: it can be removed only after theirs.
  std::vector<Worker> workers_;
  std::unordered_map<pid_t, int> by_pid_;  ///< Live workers.
  std::size_t live_ = 0;
  bool all_well_ = true;
  int stop_signal_ = 0;
  bool passes_on_ = true;
  TimePoint stop_deadline_;
  TimePoint final_at_;
  TimePoint give_up_at_;
  std::unordered_set<pid_t> signalled_orphans_;
  ProcessFreezer freezer_;
  std::optional<UninterruptibleWatch> uninterruptible_watch_;
};

WorkerGroup::WorkerGroup(asio::io_context& loop, WorkerGroupOptions options, Callbacks callbacks)
    : impl_(std::make_unique<Impl>(loop, options, std::move(callbacks))) {}
WorkerGroup::~WorkerGroup() = default;

void WorkerGroup::start(const std::vector<SpawnRequest>& requests) {
  impl_->start(requests);
}
void WorkerGroup::stop(int signal, std::chrono::milliseconds grace) {
  impl_->stop(signal, grace, false);
}
void WorkerGroup::stop_already_signalled(int signal, std::chrono::milliseconds grace) {
  impl_->stop(signal, grace, true);
}
void WorkerGroup::kill_now() {
  impl_->kill_now();
}
void WorkerGroup::notify(int signal) {
  impl_->notify(signal);
}
bool WorkerGroup::has_live_workers() const {
  return impl_->live_ != 0;
}

std::vector<pid_t> WorkerGroup::pids() const {
  std::vector<pid_t> pids;
  for (const Worker& worker : impl_->workers_) pids.push_back(worker.live ? worker.pid : -1);
  return pids;
}

}  // namespace tensorplay::agent
