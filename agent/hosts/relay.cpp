#include "agent/hosts/relay.hpp"

#include "agent/hosts/branches.hpp"
#include "agent/option_values.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/host.hpp"
#include "tensorplay/distributed/exit_codes.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <map>
#include <signal.h>
#include <unistd.h>

namespace tensorplay::agent {
namespace {

namespace exit_code = distributed::exit_code;

/// This host's own environment with the other's over it.
std::vector<std::string> merged_environment(const Assignment& assignment) {
  std::map<std::string, std::string> all;
  const auto take = [&all](std::string_view entry) {
    const auto equals = entry.find('=');
    if (equals != std::string_view::npos) all[std::string(entry.substr(0, equals))] = entry.substr(equals + 1);
  };
  for (char** entry = environ; *entry != nullptr; ++entry) take(*entry);
  for (const std::string& entry : assignment.environment) take(entry);
  // What would make it start the hosts again is nowhere: not among its words, not in its environment.
  for (const char* name : {base::env::kWorkerMark, "TPRUN_HOSTS", "TPRUN_HOSTFILE", "TPRUN_SSH_COMMAND"})
    all.erase(name);
  std::vector<std::string> out;
  for (const auto& [name, value] : all) out.push_back(name + "=" + value);
  return out;
}

class Relay {
 public:
  Relay()
      : branches_([this](const Frame& frame) { say(frame.kind, frame.text); },
                  [](const std::string&) { return false; }) {}

  int run() {
    up_.push(greeting_of_relay());
    while (!is_over()) {
      PollSet set;
      if (!up_.is_empty()) set.watch(up_.fd(), POLLOUT, [this] { write_up(); });
      if (is_listening_) set.watch(STDIN_FILENO, POLLIN, [this] { read_orders(); });
      branches_.watch(set, !up_.is_full());
      if (has_agent_) watch_agent(set);
      set.wait();
    }
    return code_;
  }

 private:
  bool is_over() const {
    const bool has_work = !assignment_ ? is_listening_ : has_agent_ || !branches_.are_done();
    return !has_work && up_.is_empty();
  }

  void say(FrameKind kind, const std::string& text) { up_.push(format_frame(kind, text)); }

  void write_up() {
    if (!up_.write_some()) lose_lifeline();
  }

  void read_orders() {
    std::array<char, 65536> block;
    const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) return lose_lifeline();
    orders_.append(block.data(), static_cast<std::size_t>(got));
    for (auto end = orders_.find('\n'); end != std::string::npos; end = orders_.find('\n')) {
      const std::string line = orders_.substr(0, end);
      orders_.erase(0, end + 1);
      assignment_ ? obey(line) : begin(line);
    }
  }

  void begin(const std::string& line) {
    try {
      assignment_ = parse_assignment(line);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "tprun: --stdin-lifeline: %s\n", error.what());
      code_ = exit_code::kUsage;
      is_listening_ = false;
      return;
    }
    std::vector<std::size_t> behind;
    for (std::size_t i = 1; i < assignment_->members.size(); ++i) behind.push_back(i);
    branches_.start(*assignment_, behind);
    start_agent();
  }

  void start_agent() {
    const std::string& folder = assignment_->folder;
    if (::chdir(folder.c_str()) != 0) {
      const std::string why = std::strerror(errno);
      say(FrameKind::kErr, "tprun: " + folder + " on " + base::short_host_name() + ": " + why +
                               "; start from a folder that all hosts have\n");
      return tell_end(exit_code::kUsage);
    }
    PipedChildRequest request;
    request.words = assignment_->words;
    request.words.insert(request.words.begin() + 1, "--host-member=" + assignment_->member_values.front());
    request.environment = merged_environment(*assignment_);
    request.has_input = false;
    request.death_signal = SIGTERM;
    try {
      agent_ = start_piped_child(request);
      has_agent_ = true;
    } catch (const std::exception& error) {
      say(FrameKind::kErr, "tprun: on " + base::short_host_name() + ": " + error.what() + "\n");
      tell_end(exit_code::kProgramNotFound);
    }
  }

  void obey(const std::string& line) {
    constexpr std::string_view kSignal = "signal ";
    const auto number =
        line.starts_with(kSignal) ? as_whole(std::string_view(line).substr(kSignal.size())) : std::nullopt;
    if (!number || *number < 1 || *number > 64) return;
    branches_.signal(static_cast<int>(*number));
    if (has_agent_) ::kill(agent_.pid, static_cast<int>(*number));
  }

  /// Whoever started all this is gone: it stops as by its signal, with all its grace.
  void lose_lifeline() {
    if (!std::exchange(is_listening_, false)) return;
    branches_.close_inputs();
    if (has_agent_) ::kill(agent_.pid, SIGTERM);
  }

  void watch_agent(PollSet& set) {
    if (!up_.is_full()) {
      set.watch(agent_.output.get(), POLLIN, [this] { pass_on(agent_.output, out_, FrameKind::kOut); });
      set.watch(agent_.error.get(), POLLIN, [this] { pass_on(agent_.error, err_, FrameKind::kErr); });
    }
    // What outlives it in the background (--leave-daemons) may hold the pipes: its end is the end.
    set.watch(agent_.end.get(), POLLIN, [this] { finish_agent(); });
  }

  bool pass_on(base::UniqueFd& pipe, LineJoiner& lines, FrameKind kind) {
    if (!pipe) return false;
    std::array<char, 65536> block;
    const ssize_t got = ::read(pipe.get(), block.data(), block.size());
    if (got < 0) return false;
    std::string whole = lines.feed({block.data(), static_cast<std::size_t>(got)});
    if (got == 0) {
      whole += lines.finish();
      pipe.reset();
    }
    if (!whole.empty()) say(kind, whole);
    return got > 0;
  }

  void finish_agent() {
    while (pass_on(agent_.output, out_, FrameKind::kOut)) {
    }
    while (pass_on(agent_.error, err_, FrameKind::kErr)) {
    }
    for (const auto& [lines, kind] : {std::pair{&out_, FrameKind::kOut}, std::pair{&err_, FrameKind::kErr}}) {
      if (const std::string rest = lines->finish(); !rest.empty()) say(kind, rest);
    }
    has_agent_ = false;
    tell_end(agent_.reap());
  }

  void tell_end(int code) {
    say(FrameKind::kEnd, std::to_string(assignment_->members.front()) + " " + std::to_string(code));
  }

  OutputQueue up_{STDOUT_FILENO};
  Branches branches_;
  std::optional<Assignment> assignment_;
  std::string orders_;
  bool is_listening_ = true;
  PipedChild agent_;
  bool has_agent_ = false;
  LineJoiner out_, err_;
  int code_ = 0;
};

}  // namespace

int run_relay() {
  ::signal(SIGPIPE, SIG_IGN);  // Who reads upward may be gone: that is news, not a reason to leave all behind.
  return Relay().run();
}

}  // namespace tensorplay::agent
