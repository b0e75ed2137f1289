/// The process layer alone as a program: guardian, agent and workers, without rendezvous, logs or command line. What
/// tprun's process layer does can be tried with it when the rest is not wanted.
///
///     mini_launcher WORKERS GRACE_MS RESTARTS LEAVE_DAEMONS program [argument...]
#include "agent/guardian.hpp"
#include "agent/worker_group.hpp"

#include <asio/io_context.hpp>

#include <cstdio>
#include <cstdlib>
#include <signal.h>

using namespace tensorplay::agent;

namespace {

struct Job {
  int workers = 1;
  std::chrono::milliseconds grace{1000};
  int restarts = 0;
  bool leave_daemons = false;
  std::vector<std::string> argv;
};

class MiniAgent {
 public:
  MiniAgent(const Job& job, GuardianLink& link)
      : job_(job), link_(link), group_(loop_, {job.leave_daemons}, callbacks()) {}

  AgentResult run() {
    GuardianLink::Callbacks callbacks;
    callbacks.on_stop = [this](int signal, bool force, bool delivered) { stop(signal, force, delivered); };
    callbacks.on_notify = [this](int signal) { group_.notify(signal); };
    callbacks.on_guardian_lost = [this] { stop(SIGKILL, true, false); };
    link_.listen(loop_, std::move(callbacks));
    start();
    loop_.run();
    return result_;
  }

 private:
  WorkerGroup::Callbacks callbacks() {
    return {[this](const WorkerExit& exit) { ended(exit); }, [this] { gone(); }, {}};
  }

  void start() {
    failed_ = false;
    std::vector<SpawnRequest> requests(static_cast<std::size_t>(job_.workers));
    for (std::size_t rank = 0; rank < requests.size(); ++rank) {
      requests[rank].argv = job_.argv;
      for (char** entry = environ; *entry != nullptr; ++entry) requests[rank].environment.emplace_back(*entry);
      requests[rank].environment.push_back("LOCAL_RANK=" + std::to_string(rank));
      requests[rank].stdin_fd = rank == 0 ? 0 : -1;
    }
    try {
      group_.start(requests);
    } catch (const StartupFailure& failure) {
      std::fprintf(stderr, "mini_launcher: %s\n", failure.what());
      result_.exit_code = failure.exit_code();
      job_.restarts = 0;
      failed_ = true;
    }
  }

  void ended(const WorkerExit& exit) {
    if (exit.exit_code == 0 && exit.signal == 0) return;
    if (!failed_ && result_.stop_signal == 0) result_.exit_code = exit.signal != 0 ? 128 + exit.signal : exit.exit_code;
    failed_ = true;
    group_.stop(SIGTERM, job_.grace);
  }

  void gone() {
    if (failed_ && result_.stop_signal == 0 && job_.restarts-- > 0) {
      result_.exit_code = 0;
      return start();
    }
    result_.leaves_daemons = job_.leave_daemons && !failed_ && result_.stop_signal == 0;
    loop_.stop();
  }

  void stop(int signal, bool force, bool delivered) {
    if (!force) std::fprintf(stderr, "mini_launcher: stop %d%s\n", signal, delivered ? " (delivered)" : "");
    if (result_.stop_signal == 0) result_.stop_signal = signal;
    if (force) return group_.kill_now();
    delivered ? group_.stop_already_signalled(signal, job_.grace) : group_.stop(signal, job_.grace);
  }

  Job job_;
  GuardianLink& link_;
  asio::io_context loop_{1};
  AgentResult result_;
  bool failed_ = false;
  WorkerGroup group_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  Job job;
  job.workers = std::atoi(argv[1]);
  job.grace = std::chrono::milliseconds(std::atoi(argv[2]));
  job.restarts = std::atoi(argv[3]);
  job.leave_daemons = std::atoi(argv[4]) != 0;
  job.argv.assign(argv + 5, argv + argc);
  return run_guarded({{SIGTERM, SIGINT, SIGHUP, SIGQUIT}},
                     [&job](GuardianLink& link) { return MiniAgent(job, link).run(); });
}
