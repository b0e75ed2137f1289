#include "agent/hosts/host_run.hpp"

#include "agent/entry_state.hpp"
#include "agent/hosts/branches.hpp"
#include "agent/hosts/host_member.hpp"
#include "agent/hosts/host_tree.hpp"
#include "agent/hosts/meeting_names.hpp"
#include "agent/process_end.hpp"
#include "agent/signal_intake.hpp"
#include "runtime/base/host.hpp"
#include "tensorplay/distributed/exit_codes.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <signal.h>
#include <unistd.h>

namespace tensorplay::agent {
namespace {

namespace exit_code = distributed::exit_code;
using Clock = PollSet::Clock;

/// Agents tell each other of a failure within milliseconds; who has not ended by then does not know.
constexpr std::chrono::seconds kTimeToHear{10};
/// Beyond the grace of the workers: for the agents' own end and the way back.
constexpr std::chrono::seconds kTimeToEnd{20};

class HostRun {
 public:
  HostRun(const LaunchPlan& plan, const std::vector<std::string>& words)
      : plan_(plan),
        words_(words),
        signals_(handled_signals()),
        branches_([this](const Frame& frame) { take(frame); }, is_this_host) {}

  int run() {
    start();
    while (!branches_.are_done() || !out_.is_empty() || !err_.is_empty()) {
      PollSet set;
      set.watch(signals_.fd(), POLLIN, [this] { take_signals(); });
      if (!out_.is_empty()) set.watch(out_.fd(), POLLOUT, [this] { out_.write_some(); });
      if (!err_.is_empty()) set.watch(err_.fd(), POLLOUT, [this] { err_.write_some(); });
      branches_.watch(set, !out_.is_full() && !err_.is_full());
      keep_time(set);
      set.wait();
    }
    if (stop_signal_ != 0) return end_by_signal(stop_signal_);
    return code_;
  }

 private:
  std::set<int> handled_signals() const {
    std::vector<int> all = plan_.stop_signals;
    all.insert(all.end(), {SIGUSR1, SIGUSR2});
    entry_state();
    std::set<int> handled = without_ignored(all);
    block_signals(handled);
    ::signal(SIGPIPE, SIG_IGN);
    return handled;
  }

  void start() {
    Assignment whole;
    whole.program = words_.front();
    whole.words = words_for_member(words_, plan_.front);
    whole.environment = travelling_environment(EnvironmentView(environ));
    char* folder = ::get_current_dir_name();
    whole.folder = folder != nullptr ? folder : "/";
    std::free(folder);
    whole.ssh = plan_.ssh_command;
    const auto meeting = find_meeting_names(plan_.hosts, plan_.ssh_command);
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < plan_.hosts.size(); ++i) {
      whole.members.push_back(i);
      whole.names.push_back(plan_.hosts[i].name);
      whole.member_values.push_back(format_host_member(plan_.hosts, meeting, plan_.rdzv.run_id, i));
      positions.push_back(i);
      open_.insert(i);
    }
    branches_.start(whole, positions);
  }

  void say(const std::string& text) { err_.push("tprun: " + text + "\n"); }

  void take(const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::kOut:
        return out_.push(frame.text);
      case FrameKind::kErr:
        return err_.push(frame.text);
      case FrameKind::kEnd: {
        const auto [index, code] = parse_member_news(frame.text);
        open_.erase(index);
        if (code != "0") fail(std::atoi(code.c_str()));
        return;
      }
      case FrameKind::kLost:
        const auto [index, why] = parse_member_news(frame.text);
        open_.erase(index);
        ++lost_;
        if (!is_stopping()) say(plan_.hosts.at(index).name + ": " + why);
        if (plan_.hosts.size() - lost_ < static_cast<std::size_t>(plan_.min_nodes)) {
          fail(exit_code::kRendezvousFailed);
        }
    }
  }

  bool is_stopping() const { return stop_signal_ != 0 || has_told_to_stop_; }

  /// The first failure gives the exit code; the others hear of it from each other, or after a while from here.
  void fail(int code) {
    if (code_ == 0) code_ = code;
    if (!stop_at_) stop_at_ = Clock::now() + (code == exit_code::kRendezvousFailed ? Clock::duration{} : kTimeToHear);
  }

  void take_signals() {
    while (const auto received = signals_.take()) {
      const auto& stops = plan_.stop_signals;
      if (std::find(stops.begin(), stops.end(), received->signal) != stops.end()) {
        if (stop_signal_ == 0) stop_signal_ = received->signal;
        give_up_after_grace();
      }
      branches_.signal(received->signal);
    }
  }

  void give_up_after_grace() {
    if (!give_up_at_) give_up_at_ = Clock::now() + plan_.shutdown_timeout + kTimeToEnd;
  }

  void keep_time(PollSet& set) {
    const auto now = Clock::now();
    if (stop_at_ && !has_told_to_stop_) {
      if (now >= *stop_at_) {
        has_told_to_stop_ = true;
        branches_.signal(SIGTERM);
        give_up_after_grace();
      } else {
        set.wake_at(*stop_at_);
      }
    }
    if (give_up_at_ && !has_given_up_) {
      if (now >= *give_up_at_) {
        has_given_up_ = true;
        for (const std::size_t index : open_) say(plan_.hosts[index].name + ": has not ended in time; left to itself");
        branches_.close_inputs();
        branches_.kill();
      } else {
        set.wake_at(*give_up_at_);
      }
    }
  }

  const LaunchPlan& plan_;
  const std::vector<std::string>& words_;
  const SignalIntake signals_;
  Branches branches_;
  OutputQueue out_{STDOUT_FILENO}, err_{STDERR_FILENO};
  std::set<std::size_t> open_;
  std::size_t lost_ = 0;
  int code_ = 0;
  int stop_signal_ = 0;
  bool has_told_to_stop_ = false, has_given_up_ = false;
  std::optional<Clock::time_point> stop_at_, give_up_at_;
};

}  // namespace

int run_on_hosts(const LaunchPlan& plan, const std::vector<std::string>& words) {
  return HostRun(plan, words).run();
}

}  // namespace tensorplay::agent
