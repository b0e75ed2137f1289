#include "rendezvous/discovery/file_search.hpp"

#include "rendezvous/discovery/endpoint_search.hpp"
#include "rendezvous/discovery/recorded_host.hpp"
#include "rendezvous/shared_secret.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <random>

namespace tensorplay::rendezvous {

using base::SocketAddress;
using distributed::Deadline;
using distributed::DistStoreError;
using distributed::TimeoutError;
using std::chrono::milliseconds;
using Clock = Deadline::Clock;

namespace {

constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{500};
// A host that is only restarting its network answers again within this time.
constexpr milliseconds kLostTime{2'000};
constexpr milliseconds kRefusedTime{5'000};

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
        throw TimeoutError("waited " + elapsed_text(Clock::now() - begin_) + " for a store: " + reason_);
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
    const GreetingOptions greeting{options_.run_id, options_.user, std::max<std::uint64_t>(last_.epoch, 1),
                                   authenticator_};
    const auto met = greet_recorded(entry->record, entry->epoch, greeting, interrupt_, deadline_);
    reason_ = met.finding.reason;
    host.answer = met.finding.answer;
    host.is_refused = met.is_refused;
    if (host.answer == Answer::kStore && entry->epoch >= last_.epoch) {
      return MeetingPlace{false, {}, {met.address, entry->record.port}, entry->epoch, false};
    }
    if (host.answer == Answer::kStore) {  // It has been succeeded, and the successor's file is gone.
      host.answer = Answer::kSilent;
      reason_ = name_of(entry->record) + " is an old host that has been succeeded";
    }
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

  /// Nothing when another agent was faster.
  std::optional<MeetingPlace> claim(std::uint64_t epoch) {
    MeetingPlace place;
    place.is_host = true;
    place.listen_fd = listen_for_others(options_);
    const auto port = SocketAddress::of_local_end(place.listen_fd.get()).port();
    const auto record = own_record(addresses_for_others(options_, interrupt_), port, options_.user);
    if (!folder_.try_claim(epoch, record)) return std::nullopt;
    place.endpoint = {record.addresses.empty() ? "127.0.0.1" : record.addresses.front(), port};
    place.epoch = epoch;
    place.is_successor = epoch > 1;
    return place;
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
