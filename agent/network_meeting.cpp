#include "agent/network_meeting.hpp"

#include "agent/discovery_options.hpp"
#include "rendezvous/report_size.hpp"
#include "rendezvous/shared_secret.hpp"
#include "runtime/base/host.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <asio/post.hpp>

#include <random>

#include <arpa/inet.h>

namespace tensorplay::agent {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// After its lease an agent that still runs kills its workers itself; one that does not is killed so much later.
constexpr auto kDeadmanMargin = 500ms;
/// By when the workers of a lost agent are gone for certain, counted from the end of its lease.
constexpr auto kKillTime = 2s;
/// What a broken connection may take to come back.
constexpr auto kReconnect = 2s;
constexpr auto kLeaveLimit = 2s;
constexpr auto kLastOrdersLimit = 5s;

bool is_literal(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 || ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

std::uint64_t make_token() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace

struct NetworkMeeting::Host {
  Host(asio::io_context& loop, store::TCPStoreServerOptions options, const rendezvous::MembershipOptions& membership,
       const std::function<void(const rendezvous::Note&)>& on_note)
      : server(std::move(options)), mailbox(server, true), leader(loop, mailbox, membership, on_note) {}

  store::TCPStoreServer server;
  rendezvous::ServerMailbox mailbox;
  rendezvous::Leader leader;
};

NetworkMeeting::NetworkMeeting(asio::io_context& loop, const LaunchPlan& plan, GuardianLink& guardian,
                               WorkersStore& store, WaitStatus& status, const rendezvous::MembershipOptions& membership,
                               std::function<void(const rendezvous::Note&)> on_note)
    : loop_(loop),
      plan_(plan),
      guardian_(guardian),
      store_(store),
      status_(status),
      membership_(membership),
      on_note_(std::move(on_note)),
      user_(base::current_user()),
      authenticator_(rendezvous::make_authenticator(plan.rdzv.secret)),
      heartbeat_(loop),
      farewell_(loop) {}

NetworkMeeting::~NetworkMeeting() {
  callbacks_ = {};
  drop();
}

// ---- Coming together ------------------------------------------------------------------------------------------------

void NetworkMeeting::join(const rendezvous::AgentId& agent) {
  drop();
  agent_ = agent;
  token_ = make_token();
  // A new one each time: what ended the last search ends every later one of the same object. It lives for as long as
  // this agent hosts, since the word that a host leaves for the others goes with it.
  auto options = discovery_options(plan_);
  options.on_host_lost = [this, token = token_](const std::string& why) {
    asio::post(loop_, [this, token, why] {
      if (host_ && token == token_) cut_off(why, false);
    });
  };
  discovery_ = rendezvous::make_discovery(plan_.rdzv.backend, std::move(options));
  const auto limit = plan_.rdzv.join_timeout;
  finder_ = std::make_unique<StoreFinder>(
      loop_, discovery_, last_, limit,
      StoreFinder::Callbacks{.on_found = [this](StoreFinder::Found place) { found(std::move(place)); },
                             .on_wait = [this, limit](const std::string& why) { status_.wait(why, limit); },
                             .on_failed =
                                 [this](const std::string& why) {
                                   if (callbacks_.on_failed) callbacks_.on_failed(why);
                                 }});
}

void NetworkMeeting::found(StoreFinder::Found found) {
  finder_.reset();
  place_ = found.place.endpoint;
  epoch_ = found.place.epoch;
  try {
    if (found.place.is_host) {
      be_host(std::move(found.place));
    } else {
      be_member(found);
    }
  } catch (const distributed::DistError& error) {
    drop();
    if (callbacks_.on_failed) callbacks_.on_failed(error.what());
  }
}

void NetworkMeeting::be_host(rendezvous::MeetingPlace place) {
  store::TCPStoreServerOptions options;
  const auto listens_at = base::SocketAddress::of_local_end(place.listen_fd.get()).host();
  options.listen_fd = std::move(place.listen_fd);
  options.has_agent_table = true;
  options.run_id = plan_.rdzv.run_id;
  options.user = user_;
  options.epoch = epoch_;
  options.authenticator = authenticator_;
  host_ = std::make_unique<Host>(loop_, std::move(options), membership_at(place), on_note_);
  store_.use_host(&host_->server);
  host_->server.on_newer_epoch([this](std::uint64_t epoch) {
    asio::post(loop_, [this, epoch] {
      if (host_ && epoch > epoch_) cut_off("another host has taken over (epoch " + std::to_string(epoch) + ")", false);
    });
  });
  orders_.emplace(loop_, host_->mailbox, rendezvous::orders_queue(agent_), callbacks_.on_order);
  // Where it listens everywhere the endpoint may say what the others call this host.
  held(listens_at != "::" && listens_at != "0.0.0.0" ? listens_at : is_literal(place_.host) ? place_.host : "");
}

void NetworkMeeting::be_member(const StoreFinder::Found& found) {
  store_.use_host(nullptr);
  reached_at_ = found.addresses.front().host();
  rendezvous::StoreLinkOptions options;
  options.addresses = found.addresses;
  options.place = base::format_host_port(place_.host, place_.port);
  options.run_id = plan_.rdzv.run_id;
  options.user = user_;
  options.agent = agent_;
  options.token = token_;
  options.epoch = epoch_;
  options.keep_alive = plan_.rdzv.keep_alive;
  options.reconnect = kReconnect;
  options.will = will();
  options.authenticator = authenticator_;
  link_ = std::make_unique<rendezvous::StoreLink>(
      loop_, std::move(options),
      rendezvous::StoreLink::Callbacks{
          .on_held = [this](const std::string& local_address) { held(local_address); },
          .on_answer = [this](steady_clock::time_point sent) { arm_deadman(sent); },
          .on_cut_off = [this](const rendezvous::StoreLink::CutOff& cut) { cut_off(cut.why, cut.is_store_lost); }});
  orders_.emplace(loop_, *link_, rendezvous::orders_queue(agent_), callbacks_.on_order);
}

/// The store has taken us in. From here on the lease counts, and the guardian knows whom to tell of our death.
void NetworkMeeting::held(const std::string& local_address) {
  AgentLease lease;
  if (link_) {
    lease.host = reached_at_;
    lease.port = place_.port;
  }
  lease.run_id = plan_.rdzv.run_id;
  lease.user = user_;
  lease.agent = agent_;
  lease.token = token_;
  lease.epoch = epoch_;
  lease.keep_alive = plan_.rdzv.keep_alive;
  guardian_.hold(lease);
  beat();
  asio::post(loop_, [this, met = Met{host_ != nullptr, local_address, epoch_}] {
    if ((host_ || link_) && callbacks_.on_met) callbacks_.on_met(met);
  });
}

/// Says that this process runs: to its guardian, and where the store is its own, to the kernel.
void NetworkMeeting::beat() {
  guardian_.beat();
  if (host_) arm_deadman(steady_clock::now());
  if (host_) look_for_rivals();
  heartbeat_.expires_after(std::max<steady_clock::duration>(plan_.rdzv.keep_alive / 3, 50ms));
  heartbeat_.async_wait([this](const std::error_code& error) {
    if (!error && (host_ || link_)) beat();
  });
}

/// After a cut that has healed the members may be with another host, and nobody else would tell this one.
void NetworkMeeting::look_for_rivals() {
  const bool is_worth_it = plan_.rdzv.backend == "c10d" && plan_.rdzv.endpoints.size() > 1 &&
                           host_->leader.membership().is_waiting_for_quorum();
  if (!is_worth_it) return rival_finder_.reset();
  if (rival_finder_) return;
  rival_finder_ = std::make_unique<StoreFinder>(loop_, rendezvous::make_rival_search(discovery_options(plan_)),
                                                rendezvous::LastSeen{epoch_, place_}, std::nullopt,
                                                StoreFinder::Callbacks{.on_found =
                                                                           [this](StoreFinder::Found rival) {
                                                                             if (host_) step_down(rival.place);
                                                                           },
                                                                       .on_wait = {},
                                                                       .on_failed = {}});
}

void NetworkMeeting::step_down(const rendezvous::MeetingPlace& rival) {
  rival_finder_.reset();
  if (!host_->leader.membership().is_waiting_for_quorum()) return;
  const auto place = base::format_host_port(rival.endpoint.host, rival.endpoint.port);
  host_->leader.apply(rendezvous::Event(rendezvous::Succession{place}));
  epoch_ = rival.epoch;  // which may be older than the one that was raised here in vain
  cut_off(place + " leads the job now", false);
}

void NetworkMeeting::arm_deadman(steady_clock::time_point alive_at) {
  deadman_.arm(alive_at + plan_.rdzv.keep_alive + kDeadmanMargin);
}

rendezvous::MembershipOptions NetworkMeeting::membership_at(const rendezvous::MeetingPlace& place) const {
  auto options = membership_;
  options.place = base::format_host_port(place.endpoint.host, place.endpoint.port);
  options.epoch = place.epoch;
  options.is_successor = place.is_successor;
  options.lease = plan_.rdzv.keep_alive;
  options.kill_time = kKillTime;
  options.can_be_succeeded =
      plan_.rdzv.endpoints.size() > 1 || (plan_.rdzv.backend != "static" && plan_.rdzv.backend != "c10d");
  return options;
}

std::string NetworkMeeting::will() const {
  rendezvous::Will will;
  will.agent = agent_;
  will.keep_alive_seconds = std::chrono::duration<double>(plan_.rdzv.keep_alive).count();
  will.kill_seconds = std::chrono::duration<double>(kKillTime).count();
  return rendezvous::encode(rendezvous::Report(will));
}

// ---- Coming apart ---------------------------------------------------------------------------------------------------

void NetworkMeeting::cut_off(const std::string& why, bool is_store_lost) {
  last_.epoch = epoch_;
  last_.lost_endpoint.reset();
  if (is_store_lost) last_.lost_endpoint = place_;
  const auto tell = callbacks_.on_cut_off;
  part();
  if (tell) tell(why);
  // Only now: until the workers have been killed the kernel watches on.
  deadman_.disarm();
}

void NetworkMeeting::drop() {
  part();
  deadman_.disarm();
}

void NetworkMeeting::part() {
  heartbeat_.cancel();
  farewell_.cancel();
  finder_.reset();
  rival_finder_.reset();
  orders_.reset();
  link_.reset();
  if (host_) {
    store_.use_host(nullptr);
    host_.reset();
  }
}

void NetworkMeeting::leave(bool is_the_end_of_all, std::function<void()> done) {
  callbacks_ = {};
  finder_.reset();
  rival_finder_.reset();
  if (link_) return link_->leave(kLeaveLimit, std::move(done));
  if (!host_ || !is_the_end_of_all) return done();
  // Who has taken its last order takes its will back and goes; nobody shall find the store gone before that.
  const auto go = std::make_shared<std::function<void()>>(std::move(done));
  const auto go_once = [go] {
    if (const auto call = std::exchange(*go, nullptr)) call();
  };
  farewell_.expires_after(kLastOrdersLimit);
  farewell_.async_wait([go_once](const std::error_code& error) {
    if (!error) go_once();
  });
  host_->server.on_no_wills([this, go_once] { asio::post(loop_, go_once); });
}

// ---- Mail -----------------------------------------------------------------------------------------------------------

void NetworkMeeting::post(const rendezvous::Report& report) {
  auto text = rendezvous::encode_within(report);
  if (host_) {
    host_->mailbox.post(rendezvous::kInbox, text);
  } else if (link_) {
    link_->post(rendezvous::kInbox, text);
  }
}

double NetworkMeeting::clock_offset() const {
  return link_ ? std::chrono::duration<double>(link_->clock_offset()).count() : 0;
}

}  // namespace tensorplay::agent
