/// Where an agent meets the others: through it reports reach the leader and orders come back, wherever the leader sits.
#pragma once

#include "rendezvous/messages.hpp"

#include <functional>
#include <optional>
#include <string>

namespace tensorplay::agent {

/// Thread rules: the loop's thread; callbacks too, and never from within a call.
class Meeting {
 public:
  /// The store knows this agent: it may say joined.
  struct Met {
    bool is_store_host = false;
    std::string local_address;  ///< By which this host is reached on the way to the store; empty: not known.
    std::uint64_t epoch = 0;    ///< Of the store.
  };

  struct Callbacks {
    std::function<void(const Met&)> on_met;
    std::function<void(const std::string& order)> on_order;
    /// What this agent was part of goes on without it, or may. Join anew, under another name.
    std::function<void(const std::string& why)> on_cut_off;
    /// There is no store to be found, and none will be.
    std::function<void(const std::string& why)> on_failed;
  };

  virtual ~Meeting() = default;

  /// Who is told. Call first, and once.
  virtual void listen(Callbacks callbacks) = 0;

  /// Looks for the store (or makes it) for an agent of this name. Ends in on_met or on_failed, or never when left.
  virtual void join(const rendezvous::AgentId& agent) = 0;

  virtual void post(const rendezvous::Report& report) = 0;

  /// What must be added to this host's clock, in seconds, to get that of the leader's host.
  virtual double clock_offset() const { return 0; }

  /// The end: says what is left to say, and calls `done`, at once or soon. With `is_the_end_of_all` everybody has been
  /// told to go, and whoever hosts the store stays until they have. No other callback comes after this.
  virtual void leave(bool is_the_end_of_all, std::function<void()> done) = 0;
};

}  // namespace tensorplay::agent
