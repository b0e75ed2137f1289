/// The relays that this process has started on other hosts, each with a part of the hosts behind it: what they are
/// told, what they print, and who of them has ended or was lost. Thread rules: one thread, which calls watch() before
/// each poll.
#pragma once

#include "agent/hosts/output_queue.hpp"
#include "agent/hosts/piped_child.hpp"
#include "agent/hosts/poll_set.hpp"
#include "agent/hosts/relay_wire.hpp"

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace tensorplay::agent {

class Branches {
 public:
  /// Takes each frame of theirs, and those that are made here for a branch that is lost.
  using Take = std::function<void(const Frame&)>;

  /// `is_local`: started without ssh.
  Branches(Take take, std::function<bool(const std::string& host)> is_local);
  ~Branches();
  Branches(const Branches&) = delete;
  Branches& operator=(const Branches&) = delete;

  /// Divides the members at `positions` of `whole` and starts a relay for each part.
  void start(const Assignment& whole, const std::vector<std::size_t>& positions);

  /// `reads`: false while nobody takes more output.
  void watch(PollSet& set, bool reads);

  /// Passed on to every tprun behind them.
  void signal(int number);

  /// The end of their input: they stop everything. What is behind a branch that does not end is not waited for.
  void close_inputs();
  void kill();

  /// None is left, and everything they said has been taken.
  bool are_done() const;

 private:
  struct Branch;

  void start_one(const Assignment& part);
  void read_output(Branch& branch);
  void read_error(Branch& branch);
  void take_frame(Branch& branch, Frame frame);
  void give_up(Branch& branch, const std::string& why);
  void finish(Branch& branch);
  void drop_ended();

  Take take_;
  std::function<bool(const std::string&)> is_local_;
  std::list<std::unique_ptr<Branch>> branches_;
};

}  // namespace tensorplay::agent
