#include "rendezvous/discovery/endpoint_search.hpp"

#include "rendezvous/discovery/name_lookup.hpp"
#include "rendezvous/discovery/store_probe.hpp"
#include "rendezvous/shared_secret.hpp"
#include "runtime/base/host.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cstdio>
#include <random>
#include <unistd.h>

namespace tensorplay::rendezvous {

using base::SocketAddress;
using distributed::Deadline;
using distributed::DistStoreError;
using distributed::SocketError;
using distributed::TimeoutError;
using Clock = Deadline::Clock;

namespace {

// As connect_to's pacing.
constexpr milliseconds kFirstPause{5};
constexpr double kPauseGrowth = 1.5;
constexpr milliseconds kLongestPause{1'000};
// A name that does not resolve yet cannot be waited for: it is asked for again each second.
constexpr milliseconds kAskAgain{1'000};
// The scheduler's controller serves a whole cluster.
constexpr milliseconds kAskSchedulerAgain{10'000};
// An address that does not answer may have moved.
constexpr milliseconds kAddressesLast{5'000};
// What passes within this time is no news for people.
constexpr milliseconds kQuietTime{1'000};

bool is_loopback_name(const std::string& host) {
  if (host == "localhost" || host == "localhost.localdomain" || host == "ip6-localhost" || host == "::1") return true;
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
}

bool is_address_of_nobody(const std::string& host) {
  return host == "0.0.0.0" || host == "::" || host == "0";
}

/// One endpoint while it is searched.
struct Place {
  Endpoint endpoint;
  EndpointView view;
  std::unique_ptr<NameLookup> lookup;
  Clock::time_point ask_again;
  Clock::time_point ask_scheduler_again{};
  std::vector<SocketAddress> addresses;
  std::unique_ptr<StoreProbe> probe;
  std::string peer;  ///< The address that the last probe spoke with.
  Clock::time_point probe_again;
  milliseconds pause = kFirstPause;
  std::string bind_failure;
  bool was_strangers = false;
  std::optional<Clock::time_point> store_since;
  std::string told;  ///< The last reason that people were told.
};

class Search {
 public:
  Search(const DiscoveryOptions& options, EndpointSearch::Rule rule, const Interrupt& interrupt, const LastSeen& last,
         Deadline deadline, const std::function<void(const std::string&)>& say)
      : options_(options),
        rule_(rule),
        interrupt_(interrupt),
        deadline_(deadline),
        say_(say),
        authenticator_(make_authenticator(options.secret)),
        begin_(Clock::now()) {
    view_.last_epoch = last.epoch;
    view_.is_host = options.is_host;
    view_.node_index = options.node_index;
    view_.total = deadline.is_never() ? milliseconds::max() / 4
                                      : std::chrono::duration_cast<milliseconds>(deadline.remaining(begin_));
    for (std::size_t i = 0; i < options.endpoints.size(); ++i) {
      Place place;
      place.endpoint = options.endpoints[i];
      place.view.name = base::format_host_port(place.endpoint.host, place.endpoint.port);
      place.ask_again = place.probe_again = begin_;
      if (last.lost_endpoint == place.endpoint) view_.lost = i;
      places_.push_back(std::move(place));
    }
  }

  MeetingPlace run() {
    interrupt_.check();
    while (true) {
      const auto now = Clock::now();
      for (auto& place : places_) advance(place, now);
      const Choice choice = choose(now);
      const Place& chosen = places_[choice.endpoint];
      switch (choice.kind) {
        case Choice::Kind::kJoin:
          return {false, {}, chosen.endpoint, choice.epoch, false, chosen.peer};
        case Choice::Kind::kFail:
          throw DistStoreError(choice.why);
        case Choice::Kind::kHost:
          if (auto hosted = try_host(choice)) return std::move(*hosted);
          continue;  // Its port is taken: choose again.
        case Choice::Kind::kWait:
          break;
      }
      if (deadline_.has_passed(now)) throw TimeoutError(timeout_text());
      tell(now);
      for (auto& place : places_) start_what_is_due(place, now);
      wait(choice);
    }
  }

 private:
  Choice choose(Clock::time_point now) {
    view_.endpoints.clear();
    for (auto& place : places_) {
      if (place.view.finding.answer != Answer::kStore) {
        place.store_since.reset();
      } else if (!place.store_since) {
        place.store_since = now;
      }
      view_.endpoints.push_back(place.view);
      if (place.store_since) {
        view_.endpoints.back().answering_for = std::chrono::duration_cast<milliseconds>(now - *place.store_since);
      }
    }
    view_.elapsed = std::chrono::duration_cast<milliseconds>(now - begin_);
    const bool has_joinable = std::any_of(view_.endpoints.begin(), view_.endpoints.end(),
                                          [&](const auto& endpoint) { return is_joinable(view_, endpoint); });
    if (!has_joinable) {
      joinable_since_.reset();
    } else if (!joinable_since_) {
      joinable_since_ = now;
    }
    view_.joinable_for.reset();
    if (joinable_since_) view_.joinable_for = std::chrono::duration_cast<milliseconds>(now - *joinable_since_);
    return rule_(view_);
  }

  /// Takes what lookup and probe have brought.
  void advance(Place& place, Clock::time_point now) {
    if (place.lookup && place.lookup->is_done()) {
      place.addresses = place.lookup->addresses();
      if (place.addresses.empty()) place.addresses = addresses_from_scheduler(place, now);
      place.view.is_own = is_own(place);
      if (place.addresses.empty() && !place.view.is_port_taken) {
        place.view.finding = {Answer::kUnresolved, 0, place.lookup->error()};
      }
      place.ask_again = now + (place.addresses.empty() ? kAskAgain : kAddressesLast);
      place.lookup.reset();
    }
    if (!place.probe) return;
    place.probe->advance(now);
    if (!place.probe->is_over()) return;
    place.view.finding = place.probe->finding();
    place.peer = place.probe->peer();
    place.probe.reset();
    place.probe_again = now + jittered(place.pause);
    place.pause = std::min(
        milliseconds(static_cast<milliseconds::rep>(static_cast<double>(place.pause.count()) * kPauseGrowth + 1)),
        kLongestPause);
    const Answer answer = place.view.finding.answer;
    place.was_strangers = place.was_strangers || answer == Answer::kStranger || answer == Answer::kForeign;
    // Whoever held the port may be gone; but if it was a stranger, others have gone on behind it already.
    if (answer == Answer::kUnreachable && !place.was_strangers) place.view.is_port_taken = false;
  }

  /// Where DNS fails, as it does at the edge of many a cluster.
  std::vector<SocketAddress> addresses_from_scheduler(Place& place, Clock::time_point now) {
    if (!options_.ask_scheduler || now < place.ask_scheduler_again) return {};
    std::vector<SocketAddress> addresses;
    for (const auto& literal : options_.ask_scheduler(place.endpoint.host)) {
      const auto more = SocketAddress::resolve(literal, place.endpoint.port);
      addresses.insert(addresses.end(), more.begin(), more.end());
    }
    if (addresses.empty()) place.ask_scheduler_again = Clock::now() + kAskSchedulerAgain;
    return addresses;
  }

  void start_what_is_due(Place& place, Clock::time_point now) {
    const bool has_answer = place.view.finding.answer == Answer::kStore;
    if (!place.lookup && !has_answer && now >= place.ask_again) {
      place.lookup = std::make_unique<NameLookup>(place.endpoint.host, place.endpoint.port);
    }
    if (place.probe || now < place.probe_again) return;
    auto addresses = place.addresses;
    if (place.view.is_port_taken) {
      // Whoever has the port may have it on loopback only.
      for (const char* loopback : {"127.0.0.1", "::1"}) {
        const auto more = SocketAddress::resolve(loopback, place.endpoint.port);
        addresses.insert(addresses.end(), more.begin(), more.end());
      }
    }
    if (addresses.empty()) return;
    place.probe = std::make_unique<StoreProbe>(
        std::move(addresses),
        GreetingOptions{options_.run_id, options_.user, std::max<std::uint64_t>(view_.last_epoch, 1), authenticator_},
        now);
  }

  bool is_own(const Place& place) const {
    std::vector<base::InterfaceAddress> own;
    for (const auto& address : place.addresses) {
      if (address.is_loopback()) return true;
      if (own.empty()) own = base::interface_addresses();
      const std::string host = address.host();
      if (std::any_of(own.begin(), own.end(), [&](const auto& entry) { return entry.address == host; })) return true;
    }
    return false;
  }

  /// Nothing when the port is taken.
  std::optional<MeetingPlace> try_host(const Choice& choice) {
    Place& place = places_[choice.endpoint];
    try {
      MeetingPlace meeting;
      meeting.is_host = true;
      meeting.listen_fd = base::listen_on(address_to_bind(place), place.endpoint.port);
      meeting.endpoint = {place.endpoint.host, SocketAddress::of_local_end(meeting.listen_fd.get()).port()};
      meeting.epoch = choice.epoch;
      meeting.is_successor = choice.is_successor;
      return meeting;
    } catch (const SocketError& error) {
      const std::string reason = error.what();
      if (reason.find("in use") == reason.npos) throw DistStoreError(reason);
      place.bind_failure = "port " + std::to_string(place.endpoint.port) + " of this host is in use";
      place.view.is_port_taken = true;
      return std::nullopt;
    }
  }

  std::string address_to_bind(const Place& place) const {
    const std::string& host = place.endpoint.host;
    if (!is_loopback_name(host)) return options_.is_alone ? "127.0.0.1" : "::";
    if (host.find_first_not_of("0123456789.") == std::string::npos || host == "::1") return host;
    const bool has_v4 = std::any_of(place.addresses.begin(), place.addresses.end(),
                                    [](const auto& address) { return address.family() == AF_INET; });
    return place.addresses.empty() || has_v4 ? "127.0.0.1" : "::1";
  }

  void wait(const Choice& choice) {
    std::vector<pollfd> waits;
    std::optional<Clock::time_point> until;
    const auto sooner = [&](Clock::time_point when) { until = until ? std::min(*until, when) : when; };
    if (!deadline_.is_never()) sooner(deadline_.when());
    if (choice.look_again_at) sooner(begin_ + *choice.look_again_at);
    for (const auto& place : places_) {
      if (place.lookup) waits.push_back({place.lookup->fd(), POLLIN, 0});
      if (place.probe) {
        place.probe->add_waits(waits);
        if (const auto timer = place.probe->next_timer()) sooner(*timer);
      } else if (!place.addresses.empty() || place.view.is_port_taken) {
        sooner(place.probe_again);
      }
      if (!place.lookup && place.view.finding.answer != Answer::kStore) sooner(place.ask_again);
    }
    if (has_probe_over()) return;
    interrupt_.wait(waits, until);
  }

  /// A probe may have ended while it was started.
  bool has_probe_over() const {
    return std::any_of(places_.begin(), places_.end(),
                       [](const auto& place) { return place.probe && place.probe->is_over(); });
  }

  void tell(Clock::time_point now) {
    if (now - begin_ < kQuietTime) return;
    for (auto& place : places_) {
      const std::string reason = reason_of(place);
      if (reason.empty() || reason == place.told) continue;
      place.told = reason;
      if (say_) say_(reason);
    }
  }

  std::string reason_of(const Place& place) const {
    const auto& finding = place.view.finding;
    const std::string& name = place.view.name;
    std::string reason;
    switch (finding.answer) {
      case Answer::kPending:
        reason = place.lookup ? "the name of " + name + " is being looked up" : "";
        break;
      case Answer::kUnresolved:
        reason = finding.reason;
        break;
      case Answer::kStore:
        if (finding.epoch < view_.last_epoch) {
          reason = name + " is an old host that has been succeeded (epoch " + std::to_string(finding.epoch) +
                   ", the last one seen was " + std::to_string(view_.last_epoch) + ")";
        }
        break;
      case Answer::kUnreachable:
        reason = "connecting to " + name + ": " + finding.reason;
        break;
      default:
        reason = name + " " + finding.reason;
    }
    if (!place.bind_failure.empty()) reason = place.bind_failure + (reason.empty() ? "" : ", but " + reason);
    return reason;
  }

  std::string timeout_text() const {
    std::string text = "waited " + elapsed_text(Clock::now() - begin_) + " for a store";
    bool is_owned = false;
    for (const auto& place : places_) {
      const std::string reason = reason_of(place);
      text +=
          (&place == &places_.front() ? ": " : "; ") + (reason.empty() ? place.view.name + ": no answer yet" : reason);
      is_owned = is_owned || place.view.is_own;
    }
    if (rule_ == choose_endpoint && !is_owned && !options_.node_index && !options_.is_host) {
      text +=
          "; it is no address of this host; if it is of no node at all, say which one hosts the store by "
          "--rdzv-conf=is_host=True there";
    }
    return text;
  }

  milliseconds jittered(milliseconds pause) {
    std::uniform_real_distribution<double> factor(0.5, 1.5);
    return milliseconds(static_cast<milliseconds::rep>(static_cast<double>(pause.count()) * factor(random_) + 1));
  }

  const DiscoveryOptions& options_;
  EndpointSearch::Rule rule_;
  const Interrupt& interrupt_;
  Deadline deadline_;
  const std::function<void(const std::string&)>& say_;
  std::shared_ptr<const store::Authenticator> authenticator_;
  Clock::time_point begin_;
  SearchView view_;
  std::vector<Place> places_;
  std::optional<Clock::time_point> joinable_since_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace

EndpointSearch::EndpointSearch(DiscoveryOptions options, Rule rule) : options_(std::move(options)), rule_(rule) {
  if (options_.endpoints.empty()) throw DistStoreError("no endpoint to meet at; give --rdzv-endpoint=HOST:PORT");
  for (const auto& endpoint : options_.endpoints) {
    const std::string name = base::format_host_port(endpoint.host, endpoint.port);
    if (endpoint.port == 0 && !options_.is_alone) {
      throw DistStoreError(name + ": port 0 means any free port, which the other nodes cannot know; give a number");
    }
    if (is_address_of_nobody(endpoint.host) && !options_.is_alone) {
      throw DistStoreError(name + ": is no address of a host; give one, or a name, that all nodes can reach");
    }
  }
}

MeetingPlace EndpointSearch::find(const LastSeen& last, Deadline deadline,
                                  const std::function<void(const std::string&)>& say) {
  if (!options_.is_alone && is_loopback_name(options_.endpoints.front().host) && say) {
    say(base::format_host_port(options_.endpoints.front().host, options_.endpoints.front().port) +
        " means this host alone: agents on other hosts will not find it");
  }
  return Search(options_, rule_, interrupt_, last, deadline, say).run();
}

std::string elapsed_text(std::chrono::steady_clock::duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  char text[32];
  std::snprintf(text, sizeof text, seconds < 100 ? "%.1f s" : "%.0f s", seconds);
  return text;
}

}  // namespace tensorplay::rendezvous
