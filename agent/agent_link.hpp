/// The agent's end of the pair, as GuardianLink describes it.
#pragma once

#include "agent/guardian.hpp"
#include "agent/stop_requests.hpp"
#include "runtime/base/fd.hpp"

#include <set>

namespace tensorplay::agent {

class AgentLink : public GuardianLink {
 public:
  /// `stop_signals` and `notifications` must be blocked already.
  AgentLink(base::UniqueFd socket, const std::set<int>& stop_signals, const std::set<int>& notifications);
  ~AgentLink() override;

  void listen(asio::io_context& loop, Callbacks callbacks) override;
  void hold(const AgentLease& lease) override;
  void beat() override;
  void close() override;

  /// The last word. After it the guardian takes our end for an orderly one.
  void send_result(const AgentResult& result) const;

 private:
  struct Listener;

  base::UniqueFd socket_;
  const std::set<int> stop_signals_;
  const std::set<int> notifications_;
  std::weak_ptr<Listener> listener_;  ///< Its waits own it, so that it goes with the loop if that goes first.
};

}  // namespace tensorplay::agent
