#include "agent/hosts/branches.hpp"

#include "agent/hosts/host_tree.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <map>
#include <signal.h>
#include <unistd.h>

namespace tensorplay::agent {
namespace {

/// From the start of ssh to the first word of tprun behind it: a slow login, a busy host.
constexpr std::chrono::seconds kGreetingTime{60};

/// Appends what is there; false at the end.
bool read_some(int fd, std::string& out) {
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got > 0) {
      out.append(block.data(), static_cast<std::size_t>(got));
      return true;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && errno == EAGAIN;
  }
}

std::string without_newline(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

}  // namespace

struct Branches::Branch {
  std::map<std::size_t, std::string> open;  ///< Members of whose end nothing has been heard, with their names.
  std::string name;                         ///< Of the host that is called directly.
  std::size_t first = 0;                    ///< Its index.
  PipedChild child;
  OutputQueue input{-1};
  FrameReader reader;
  LineJoiner noise;       ///< ssh's own words, and those of the login there.
  std::string last_line;  ///< The last of them.
  PollSet::Clock::time_point greeting_due;
  bool is_ended = false;
};

Branches::Branches(Take take, std::function<bool(const std::string& host)> is_local)
    : take_(std::move(take)), is_local_(std::move(is_local)) {}

Branches::~Branches() {
  kill();
  for (auto& branch : branches_) branch->child.reap();
}

void Branches::start(const Assignment& whole, const std::vector<std::size_t>& positions) {
  for (const auto& part : divide(positions)) start_one(part_of(whole, part));
}

void Branches::start_one(const Assignment& part) {
  auto branch = std::make_unique<Branch>();
  for (std::size_t i = 0; i < part.members.size(); ++i) branch->open[part.members[i]] = part.names[i];
  branch->name = part.names.front();
  branch->first = part.members.front();
  PipedChildRequest request;
  request.words = is_local_(branch->name) ? std::vector<std::string>{part.program, "--stdin-lifeline"}
                                          : relay_command(part.ssh, branch->name, part.program);
  try {
    branch->child = start_piped_child(request);
  } catch (const std::exception& error) {
    give_up(*branch, error.what());
    return;
  }
  branch->input = OutputQueue(branch->child.standard_input.get());
  branch->input.push(format_assignment(part));
  branch->greeting_due = PollSet::Clock::now() + kGreetingTime;
  branches_.push_back(std::move(branch));
}

void Branches::watch(PollSet& set, bool reads) {
  drop_ended();
  for (auto& owned : branches_) {
    Branch& branch = *owned;
    if (!branch.input.is_empty()) set.watch(branch.input.fd(), POLLOUT, [&branch] { branch.input.write_some(); });
    if (reads) set.watch(branch.child.output.get(), POLLIN, [this, &branch] { read_output(branch); });
    set.watch(branch.child.error.get(), POLLIN, [this, &branch] { read_error(branch); });
    // Its last words are read first; what a process left behind may hold the pipes open for ever.
    const bool has_said_all = !branch.child.output && !branch.child.error;
    if (has_said_all) set.watch(branch.child.end.get(), POLLIN, [this, &branch] { finish(branch); });
    if (branch.reader.has_greeted()) continue;
    set.wake_at(branch.greeting_due);
    if (PollSet::Clock::now() >= branch.greeting_due) {
      give_up(branch, "no tprun answered there within " + std::to_string(kGreetingTime.count()) + " s" +
                          (branch.last_line.empty() ? "" : ": " + branch.last_line));
      ::kill(branch.child.pid, SIGKILL);
    }
  }
}

void Branches::read_output(Branch& branch) {
  std::string bytes;
  const bool goes_on = read_some(branch.child.output.get(), bytes);
  branch.reader.feed(bytes);
  try {
    while (auto frame = branch.reader.take()) take_frame(branch, std::move(*frame));
  } catch (const std::exception& error) {
    give_up(branch, error.what());
    ::kill(branch.child.pid, SIGKILL);
  }
  if (!goes_on) branch.child.output.reset();
}

void Branches::read_error(Branch& branch) {
  std::string bytes;
  const bool goes_on = read_some(branch.child.error.get(), bytes);
  std::string lines = branch.noise.feed(bytes);
  if (!goes_on) {
    lines += branch.noise.finish();
    branch.child.error.reset();
  }
  if (lines.empty()) return;
  std::string last = without_newline(lines);
  last.erase(0, last.rfind('\n') + 1);
  branch.last_line = without_newline(last);
  if (branch.reader.has_greeted()) take_({FrameKind::kErr, lines});
}

void Branches::take_frame(Branch& branch, Frame frame) {
  if (frame.kind == FrameKind::kEnd || frame.kind == FrameKind::kLost) {
    branch.open.erase(parse_member_news(frame.text).first);
  }
  take_(frame);
}

void Branches::give_up(Branch& branch, const std::string& why) {
  for (const auto& [index, name] : std::exchange(branch.open, {})) {
    const std::string reason = index == branch.first ? why : "it is behind " + branch.name;
    take_({FrameKind::kLost, std::to_string(index) + " " + reason});
  }
}

void Branches::finish(Branch& branch) {
  const int code = branch.child.reap();
  branch.is_ended = true;
  if (branch.open.empty()) return;
  const std::string words =
      branch.last_line.empty() ? "it ended with exit code " + std::to_string(code) : branch.last_line;
  give_up(branch, branch.reader.has_greeted() ? "the connection was lost: " + words : words);
}

bool Branches::are_done() const {
  return std::all_of(branches_.begin(), branches_.end(), [](const auto& branch) { return branch->is_ended; });
}

void Branches::drop_ended() {
  branches_.remove_if([](const auto& branch) { return branch->is_ended; });
}

void Branches::signal(int number) {
  for (auto& branch : branches_) branch->input.push("signal " + std::to_string(number) + "\n");
}

void Branches::close_inputs() {
  for (auto& branch : branches_) {
    branch->input = OutputQueue(-1);
    branch->child.standard_input.reset();
  }
}

void Branches::kill() {
  for (auto& branch : branches_) {
    if (!branch->is_ended) ::kill(branch->child.pid, SIGKILL);
  }
}

}  // namespace tensorplay::agent
