#include "rendezvous/discovery/etcd_search.hpp"

#include "rendezvous/discovery/endpoint_search.hpp"
#include "rendezvous/discovery/name_lookup.hpp"
#include "rendezvous/discovery/recorded_host.hpp"
#include "rendezvous/shared_secret.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>

namespace tensorplay::rendezvous {

using base::SocketAddress;
using distributed::Deadline;
using distributed::DistStoreError;
using distributed::TimeoutError;
using std::chrono::milliseconds;
using Clock = Deadline::Clock;

namespace {

constexpr milliseconds kFirstPause{20};
constexpr milliseconds kLongestPause{1'000};
constexpr milliseconds kAskAgain{1'000};
constexpr milliseconds kTellAfter{1'000};

}  // namespace

/// One find().
class EtcdSearch::Search {
 public:
  Search(EtcdSearch& owner, const LastSeen& last, Deadline deadline, const std::function<void(const std::string&)>& say)
      : owner_(owner),
        options_(owner.options_),
        interrupt_(owner.interrupt_),
        last_(last),
        deadline_(deadline),
        say_(say),
        key_((options_.etcd_prefix.empty() ? "/tprun" : options_.etcd_prefix) + "/" + options_.run_id + "/host"),
        greeting_{options_.run_id, options_.user, std::max<std::uint64_t>(last.epoch, 1),
                  make_authenticator(options_.secret)},
        begin_(Clock::now()) {}

  MeetingPlace run() {
    while (true) {
      interrupt_.check();
      try {
        if (!client_) connect();
        if (auto place = look()) return std::move(*place);
      } catch (const EtcdUnavailable& error) {
        reason_ = error.what();
        client_.reset();
        pause_until(Clock::now() + kAskAgain);
      }
      if (deadline_.has_passed()) {
        throw TimeoutError("waited " + elapsed_text(Clock::now() - begin_) + " for a store: " + reason_);
      }
      tell();
    }
  }

 private:
  /// Resolves the members' names, all at once. Throws EtcdUnavailable when none means anything.
  void connect() {
    std::vector<std::unique_ptr<NameLookup>> lookups;
    for (const auto& endpoint : options_.endpoints) {
      lookups.push_back(std::make_unique<NameLookup>(endpoint.host, endpoint.port));
    }
    members_.clear();
    std::string reasons;
    for (std::size_t i = 0; i < lookups.size(); ++i) {
      const NameLookup& lookup = *lookups[i];
      while (!lookup.is_done()) {
        if (deadline_.has_passed()) throw EtcdUnavailable("the name of etcd is still being looked up");
        std::vector<pollfd> waits{{lookup.fd(), POLLIN, 0}};
        interrupt_.wait(waits, deadline_.is_never() ? std::nullopt : std::optional(deadline_.when()));
      }
      for (const auto& address : lookup.addresses()) members_.push_back({options_.endpoints[i], address.host()});
      if (lookup.addresses().empty()) reasons += (reasons.empty() ? "" : "; ") + lookup.error();
    }
    if (members_.empty()) throw EtcdUnavailable(reasons);
    client_.emplace(members_, interrupt_);
  }

  std::optional<MeetingPlace> look() {
    const auto value = client_->get(key_);
    if (!value) {
      if (options_.is_host != false) return claim();
      reason_ = "nobody hosts yet, and this node may not (is_host=False)";
      pause_until(Clock::now() + kAskAgain);
      return std::nullopt;
    }
    const auto record = parse_host_record(value->text);
    if (!record) throw DistStoreError("etcd's key " + key_ + " is no record of a host; remove it");
    if (record->user != options_.user) {
      throw DistStoreError("run '" + options_.run_id + "' in etcd is user " + record->user +
                           "'s; choose another --rdzv-id or etcd_prefix");
    }
    const auto epoch = std::max(value->created, record->least_epoch);
    const auto met = greet_recorded(*record, epoch, greeting_, interrupt_, deadline_);
    reason_ = met.finding.reason;
    if (met.finding.answer == Answer::kRefused) throw DistStoreError(reason_);
    if (met.finding.answer == Answer::kStore && epoch >= last_.epoch) {
      return MeetingPlace{false, {}, {met.address, record->port}, epoch, false};
    }
    // Either it is about to serve, or it is dead and its lease will end: etcd tells of that.
    auto time = pause_;
    if (!deadline_.is_never()) {
      time = std::min(time, std::chrono::duration_cast<milliseconds>(deadline_.remaining()) + milliseconds(1));
    }
    client_->wait_for_change(key_, value->now, time);
    pause_ = std::min(pause_ * 2, kLongestPause);
    return std::nullopt;
  }

  /// Nothing when another agent was faster.
  std::optional<MeetingPlace> claim() {
    MeetingPlace place;
    place.is_host = true;
    place.listen_fd = listen_for_others(options_);
    const auto port = SocketAddress::of_local_end(place.listen_fd.get()).port();
    auto record = own_record(addresses_for_others(options_, interrupt_), port, options_.user);
    // An etcd that was set up anew counts from one again; our epochs must not.
    record.least_epoch = last_.epoch + 1;
    const auto id = client_->grant_lease(owner_.lease_time_);
    auto lease = std::make_unique<EtcdLease>(members_, id, milliseconds(owner_.lease_time_) / 3, options_.on_host_lost);
    const auto revision = client_->create(key_, to_text(record), id);
    if (!revision) return std::nullopt;
    owner_.lease_ = std::move(lease);
    place.endpoint = {record.addresses.empty() ? "127.0.0.1" : record.addresses.front(), port};
    place.epoch = std::max(*revision, record.least_epoch);
    place.is_successor = last_.epoch > 0;
    return place;
  }

  void pause_until(Clock::time_point when) {
    interrupt_.wait_until(deadline_.is_never() ? when : std::min(when, deadline_.when()));
  }

  void tell() {
    if (Clock::now() - begin_ < kTellAfter || reason_ == told_) return;
    told_ = reason_;
    if (say_) say_(reason_);
  }

  EtcdSearch& owner_;
  const DiscoveryOptions& options_;
  const Interrupt& interrupt_;
  const LastSeen& last_;
  Deadline deadline_;
  const std::function<void(const std::string&)>& say_;
  std::string key_;
  GreetingOptions greeting_;
  Clock::time_point begin_;
  std::vector<EtcdMember> members_;
  std::optional<EtcdClient> client_;
  milliseconds pause_ = kFirstPause;
  std::string reason_ = "etcd has not answered yet";
  std::string told_;
};

EtcdSearch::EtcdSearch(DiscoveryOptions options, std::chrono::seconds lease_time)
    : options_(std::move(options)), lease_time_(lease_time) {
  if (options_.endpoints.empty()) throw DistStoreError("no etcd to ask; give --rdzv-endpoint=HOST:PORT");
}

MeetingPlace EtcdSearch::find(const LastSeen& last, Deadline deadline,
                              const std::function<void(const std::string&)>& say) {
  interrupt_.check();
  lease_.reset();  // Who looks for a store hosts none any more.
  return Search(*this, last, deadline, say).run();
}

}  // namespace tensorplay::rendezvous
