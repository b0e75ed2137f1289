#include "rendezvous/discovery/file_search.hpp"

#include "rendezvous/discovery/endpoint_search.hpp"
#include "rendezvous/discovery/name_lookup.hpp"
#include "rendezvous/discovery/store_probe.hpp"
#include "rendezvous/shared_secret.hpp"
#include "runtime/base/host.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

namespace tensorplay::rendezvous {

using base::SocketAddress;
using distributed::Deadline;
using distributed::DistStoreError;
using distributed::SocketError;
using distributed::TimeoutError;
using std::chrono::milliseconds;
using Clock = Deadline::Clock;

namespace {

constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{500};
// A host that is only restarting its network answers again within this time.
constexpr milliseconds kLostTime{2'000};
constexpr milliseconds kRefusedTime{5'000};
constexpr milliseconds kLocalAddressTime{5'000};

class Search {
 public:
  Search(const DiscoveryOptions& options, const Interrupt& interrupt, HostFolder& folder, const LastSeen& last,
         Deadline deadline, const std::function<void(const std::string&)>& say)
      : options_(options),
        interrupt_(interrupt),
        folder_(folder),
        last_(last),
        deadline_(deadline),
        say_(say),
        authenticator_(make_authenticator(options.secret)),
        begin_(Clock::now()) {}

  MeetingPlace run() {
    milliseconds pause = kFirstPause;
    while (true) {
      interrupt_.check();
      if (auto place = look()) return std::move(*place);
      if (deadline_.has_passed()) {
        throw TimeoutError("waited " + seconds_text(Clock::now() - begin_) + " for a store: " + reason_);
      }
      tell();
      const auto again = Clock::now() + jittered(pause);
      interrupt_.wait_until(deadline_.is_never() ? again : std::min(again, deadline_.when()));
      pause = std::min(pause * 3 / 2, kLongestPause);
    }
  }

 private:
  std::optional<MeetingPlace> look() {
    const auto entry = folder_.newest();
    if (!entry) {
      if (options_.is_host == false) {
        reason_ = "nobody has left word in " + folder_.path() + ", and this node may not host (is_host=False)";
        return std::nullopt;
      }
      return claim(last_.epoch + 1);
    }
    if (entry->epoch != epoch_) {
      epoch_ = entry->epoch;
      failing_since_.reset();
    }
    RecordedHost host;
    host.answer = greet(*entry, host.is_refused);
    if (host.answer == Answer::kStore) return MeetingPlace{false, {}, met_at_, entry->epoch, false};
    if (host.answer == Answer::kRefused) throw DistStoreError(reason_);
    const auto now = Clock::now();
    if (!failing_since_) failing_since_ = now;
    host.failing = std::chrono::duration_cast<milliseconds>(now - *failing_since_);
    host.total = deadline_.is_never() ? milliseconds::max()
                                      : std::chrono::duration_cast<milliseconds>(deadline_.when() - begin_);
    host.is_locked = entry->is_locked;
    host.is_gone = is_certainly_gone(entry->record);
    host.is_lost = entry->epoch <= last_.epoch;
    if (options_.is_host == false || !may_be_succeeded(host)) return std::nullopt;
    return claim(std::max(entry->epoch, last_.epoch) + 1);
  }

  /// What the store that the file names answers; where it does, `met_at_` says at which address.
  Answer greet(const HostFolder::Entry& entry, bool& is_refused) {
    auto addresses = entry.record.addresses;
    if (entry.record.identity == base::host_identity()) addresses.insert(addresses.begin(), "127.0.0.1");
    const std::string who = entry.record.host + " (port " + std::to_string(entry.record.port) + ")";
    std::vector<SocketAddress> left;
    for (const auto& address : addresses) {
      try {
        const auto more = SocketAddress::resolve(address, entry.record.port);
        left.insert(left.end(), more.begin(), more.end());
      } catch (const SocketError&) {
        // A zone of that host's own, say.
      }
    }
    Finding finding{Answer::kUnreachable, 0, "it has no address that leads there"};
    is_refused = false;
    while (!left.empty()) {
      std::string peer;
      finding = probe(left, peer);
      const bool is_ours = finding.answer == Answer::kStore && finding.epoch == entry.epoch;
      if (is_ours) met_at_ = {peer, entry.record.port};
      const bool is_other = finding.answer == Answer::kStranger || finding.answer == Answer::kForeign ||
                            (finding.answer == Answer::kStore && !is_ours);
      if (!is_other) break;
      // The same address may be another machine's here, or its port another program's now.
      finding = {Answer::kUnreachable, 0, std::strerror(ECONNREFUSED)};
      std::erase_if(left, [&](const auto& address) { return address.host() == peer; });
    }
    is_refused = finding.answer == Answer::kUnreachable && finding.reason == std::strerror(ECONNREFUSED);
    reason_ = finding.answer == Answer::kUnreachable ? "connecting to " + who + ": " + finding.reason
                                                     : who + " " + finding.reason;
    return finding.answer;
  }

  Finding probe(const std::vector<SocketAddress>& addresses, std::string& peer) {
    StoreProbe probe(addresses,
                     {options_.run_id, options_.user, std::max<std::uint64_t>(last_.epoch, 1), authenticator_},
                     Clock::now());
    while (!probe.is_over() && !deadline_.has_passed()) {
      std::vector<pollfd> waits;
      probe.add_waits(waits);
      auto until = probe.next_timer();
      if (!deadline_.is_never()) until = until ? std::min(*until, deadline_.when()) : deadline_.when();
      interrupt_.wait(waits, until);
      probe.advance(Clock::now());
    }
    peer = probe.peer();
    if (!probe.is_over()) return {Answer::kSilent, 0, "has not answered yet"};
    return probe.finding();
  }

  /// Nothing when another agent was faster.
  std::optional<MeetingPlace> claim(std::uint64_t epoch) {
    MeetingPlace place;
    place.is_host = true;
    try {
      place.listen_fd = base::listen_on(options_.is_alone ? "127.0.0.1" : "::", 0);
    } catch (const SocketError& error) {
      throw DistStoreError(error.what());
    }
    const auto port = SocketAddress::of_local_end(place.listen_fd.get()).port();
    const auto record = own_record(own_addresses(), port);
    if (!folder_.try_claim(epoch, record)) return std::nullopt;
    place.endpoint = {record.addresses.empty() ? "127.0.0.1" : record.addresses.front(), port};
    place.epoch = epoch;
    place.is_successor = epoch > 1;
    return place;
  }

  std::vector<std::string> own_addresses() {
    std::vector<std::string> addresses;
    if (options_.is_alone) return addresses;
    if (!options_.local_addr.empty()) addresses = addresses_of(options_.local_addr);
    for (const auto& entry : base::interface_addresses()) {
      // Loopback leads elsewhere on every host, and the zone of a link-local address is this host's own.
      if (entry.is_loopback || (entry.is_ipv6 && entry.is_link_local)) continue;
      if (std::find(addresses.begin(), addresses.end(), entry.address) == addresses.end()) {
        addresses.push_back(entry.address);
      }
    }
    return addresses;
  }

  std::vector<std::string> addresses_of(const std::string& name) {
    const NameLookup lookup(name, 0);
    const auto until = Clock::now() + kLocalAddressTime;
    std::vector<pollfd> waits{{lookup.fd(), POLLIN, 0}};
    while (!lookup.is_done() && Clock::now() < until) interrupt_.wait(waits, until);
    std::vector<std::string> addresses;
    if (!lookup.is_done()) return addresses;
    for (const auto& address : lookup.addresses()) {
      if (!address.is_loopback()) addresses.push_back(address.host());
    }
    return addresses;
  }

  void tell() {
    if (Clock::now() - begin_ < kTellAfter || reason_ == told_) return;
    told_ = reason_;
    if (say_) say_(reason_);
  }

  milliseconds jittered(milliseconds pause) {
    std::uniform_int_distribution<milliseconds::rep> spread(pause.count() / 2, pause.count() * 3 / 2);
    return milliseconds(spread(random_));
  }

  static constexpr milliseconds kTellAfter{1'000};

  const DiscoveryOptions& options_;
  const Interrupt& interrupt_;
  HostFolder& folder_;
  const LastSeen& last_;
  Deadline deadline_;
  const std::function<void(const std::string&)>& say_;
  std::shared_ptr<const store::Authenticator> authenticator_;
  Clock::time_point begin_;
  std::uint64_t epoch_ = 0;  ///< Of the file that was looked at last.
  std::optional<Clock::time_point> failing_since_;
  Endpoint met_at_;
  std::string reason_ = "nobody has left word yet";
  std::string told_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace

bool may_be_succeeded(const RecordedHost& host) {
  if (host.answer == Answer::kStore) return false;
  if (host.is_gone) return true;
  // An unlocked file alone says nothing: many a file system locks within one host only.
  if (host.is_refused && host.is_locked == false) return true;
  if (host.is_lost && host.failing >= kLostTime) return true;
  if (host.is_refused && host.is_locked != true && host.failing >= kRefusedTime) return true;
  return host.failing >= host.total / 2;
}

FileSearch::FileSearch(DiscoveryOptions options) : options_(std::move(options)) {
  if (options_.folder.empty()) throw DistStoreError("no folder to meet in; give --rdzv-endpoint=FOLDER");
}

MeetingPlace FileSearch::find(const LastSeen& last, Deadline deadline,
                              const std::function<void(const std::string&)>& say) {
  interrupt_.check();
  folder_.reset();  // Who looks for a store hosts none any more.
  folder_ = std::make_unique<HostFolder>(options_.folder, options_.run_id);
  return Search(options_, interrupt_, *folder_, last, deadline, say).run();
}

}  // namespace tensorplay::rendezvous
