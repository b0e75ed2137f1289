/// The meeting of many nodes: finds the store over the network, or hosts it, keeps the lease, and looks again when it
/// is lost.
#pragma once

#include "agent/deadman.hpp"
#include "agent/guardian.hpp"
#include "agent/launch_plan.hpp"
#include "agent/meeting.hpp"
#include "agent/store_finder.hpp"
#include "agent/wait_status.hpp"
#include "agent/workers_store.hpp"
#include "rendezvous/leader.hpp"
#include "rendezvous/server_mailbox.hpp"
#include "rendezvous/store_link.hpp"

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include <memory>
#include <optional>

namespace tensorplay::agent {

/// Everything given must outlive it.
class NetworkMeeting final : public Meeting {
 public:
  NetworkMeeting(asio::io_context& loop, const LaunchPlan& plan, GuardianLink& guardian, WorkersStore& store,
                 WaitStatus& status, const rendezvous::MembershipOptions& membership,
                 std::function<void(const rendezvous::Note&)> on_note);
  ~NetworkMeeting() override;

  void listen(Callbacks callbacks) override { callbacks_ = std::move(callbacks); }
  void join(const rendezvous::AgentId& agent) override;
  void post(const rendezvous::Report& report) override;
  double clock_offset() const override;
  void leave(bool is_the_end_of_all, std::function<void()> done) override;

 private:
  /// What this process is to the others while it hosts the store.
  struct Host;

  void found(StoreFinder::Found found);
  void be_host(rendezvous::MeetingPlace place);
  void be_member(const StoreFinder::Found& found);
  void held(const std::string& local_address);
  void cut_off(const std::string& why, bool is_store_lost);
  void look_for_rivals();
  void step_down(const rendezvous::MeetingPlace& rival);
  void drop();
  void part();
  void beat();
  void arm_deadman(std::chrono::steady_clock::time_point alive_at);
  rendezvous::MembershipOptions membership_at(const rendezvous::MeetingPlace& place) const;
  std::string will() const;

  asio::io_context& loop_;
  const LaunchPlan& plan_;
  GuardianLink& guardian_;
  WorkersStore& store_;
  WaitStatus& status_;
  const rendezvous::MembershipOptions membership_;
  const std::function<void(const rendezvous::Note&)> on_note_;
  const std::string user_;
  const std::shared_ptr<const store::Authenticator> authenticator_;
  std::shared_ptr<rendezvous::Discovery> discovery_;
  Callbacks callbacks_;
  rendezvous::AgentId agent_;
  std::uint64_t token_ = 0;
  rendezvous::LastSeen last_;
  rendezvous::Endpoint place_;
  std::string reached_at_;  ///< The store's address, in digits, when it is on another host.
  std::uint64_t epoch_ = 0;
  Deadman deadman_;
  asio::steady_timer heartbeat_;
  asio::steady_timer farewell_;
  std::unique_ptr<StoreFinder> finder_;
  std::unique_ptr<StoreFinder> rival_finder_;  ///< While this host waits for members that may be with another one.
  std::unique_ptr<Host> host_;
  std::unique_ptr<rendezvous::StoreLink> link_;
  std::optional<rendezvous::MailReader> orders_;  // Last: it reads from host or link.
};

}  // namespace tensorplay::agent
