#include "rendezvous/store_link.hpp"

#include "rendezvous/seconds_text.hpp"
#include "rendezvous/store_connection.hpp"
#include "runtime/base/log.hpp"
#include "runtime/store/wire_codec.hpp"

#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <deque>
#include <stdexcept>

namespace tensorplay::rendezvous {
namespace {

using asio::awaitable;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

constexpr milliseconds kFirstPause{5};
constexpr milliseconds kLongestPause{500};
constexpr std::size_t kClockSamples = 8;

/// The link cannot go on, and another try would not help.
struct Refused {
  std::string why;
};

/// Compares two hosts' clocks: of the last samples the one with the shortest round trip is the truest.
class ClockComparison {
 public:
  void add(microseconds offset, steady_clock::duration round_trip) {
    samples_.push_back({round_trip, offset});
    if (samples_.size() > kClockSamples) samples_.pop_front();
  }
  microseconds offset() const {
    if (samples_.empty()) return microseconds(0);
    return std::min_element(samples_.begin(), samples_.end(),
                            [](const auto& a, const auto& b) { return a.round_trip < b.round_trip; })
        ->offset;
  }

 private:
  struct Sample {
    steady_clock::duration round_trip;
    microseconds offset;
  };
  std::deque<Sample> samples_;
};

}  // namespace

struct StoreLink::Impl : std::enable_shared_from_this<Impl> {
  struct Push {
    std::uint64_t sequence;
    std::string text;
  };

  Impl(asio::io_context& loop, StoreLinkOptions options_in, Callbacks callbacks_in)
      : options(std::move(options_in)),
        callbacks(std::move(callbacks_in)),
        own_queue(orders_queue(options.agent)),
        patience(std::max(options.keep_alive / 3, milliseconds(50))),
        speaking(loop),
        listening(loop),
        wake(loop),
        listening_pause(loop),
        speaking_pause(loop),
        lease(loop),
        farewell(loop) {}

  void start(asio::io_context& loop) {
    const auto rethrow = [](const std::exception_ptr& error) {
      if (error) std::rethrow_exception(error);
    };
    extend_lease(steady_clock::now());
    asio::co_spawn(loop, speak(shared_from_this()), rethrow);
    asio::co_spawn(loop, listen(shared_from_this()), rethrow);
  }

  void close() {
    is_closed = true;
    callbacks = {};
    on_mail = nullptr;
    speaking.close();
    listening.close();
    for (auto* timer : {&wake, &listening_pause, &speaking_pause, &lease, &farewell}) timer->cancel();
  }

  void cut_off(const std::string& why, bool is_store_lost) {
    if (is_closed) return;
    const auto tell = std::move(callbacks.on_cut_off);
    const auto done = std::move(on_left);
    close();
    if (done) {
      done();
    } else if (tell) {
      tell({why, is_store_lost});
    }
  }

  // ---- The lease ----------------------------------------------------------------------------------------------------

  void extend_lease(TimePoint from) {
    lease.expires_at(from + options.keep_alive);
    lease.async_wait([self = shared_from_this()](const std::error_code& error) {
      if (error || self->is_closed || self->lease.expiry() > steady_clock::now()) return;
      self->cut_off(
          "no answer from the store at " + self->options.place + " for " + seconds_text(self->options.keep_alive),
          true);
    });
  }

  // ---- Speaking -----------------------------------------------------------------------------------------------------

  awaitable<void> speak([[maybe_unused]] std::shared_ptr<Impl> self) {
    auto pause = kFirstPause;
    auto refused_until = TimePoint::max();
    while (!is_closed) {
      try {
        co_await open(speaking);
        co_await leave_will();
        pause = kFirstPause;
        refused_until = TimePoint::max();
        while (!is_closed && !co_await speak_once()) {
        }
        break;
      } catch (const Refused& refusal) {
        cut_off(refusal.why, false);
      } catch (const std::system_error& error) {
        if (is_closed) break;
        say_broken(error);
        // A host that answers for a port on which nobody listens has lost its store; and if the store lives it has
        // given us up by then.
        if (error.code() != asio::error::connection_refused) {
          refused_until = TimePoint::max();
        } else if (refused_until == TimePoint::max()) {
          refused_until = steady_clock::now() + options.reconnect;
        } else if (steady_clock::now() >= refused_until) {
          cut_off("the store at " + options.place + " is gone", true);
        }
        // Whatever broke it may have broken the other one too, and that one would not notice: it only waits.
        listening.close();
      }
      if (is_closed) break;
      co_await rest(speaking_pause, pause);
    }
    speaking.close();
  }

  /// One request with its answer, or a wait for something to say. True when everything has been said for good.
  awaitable<bool> speak_once() {
    if (steady_clock::now() >= next_ping) {
      co_await ping();
    } else if (!outbox.empty()) {
      std::string bytes;
      store::encode_mail_push(bytes, store::kInbox, outbox.front().sequence, outbox.front().text);
      co_await speaking.send(bytes, patience);
      co_await speaking.receive_u8(patience);  // kept, or it had it already
      outbox.pop_front();
    } else if (on_left) {
      std::string bytes;
      store::encode_cancel_will(bytes);
      co_await speaking.send(bytes, patience);
      co_await speaking.receive_u8(patience);
      end_farewell();
      co_return true;
    } else {
      wake.expires_at(next_ping);
      co_await wake.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    co_return is_closed;
  }

  awaitable<void> leave_will() {
    std::string bytes;
    const auto keep_alive = static_cast<std::uint32_t>(options.keep_alive.count());
    store::encode_leave_will(bytes, options.token, keep_alive, static_cast<std::uint32_t>(options.reconnect.count()),
                             options.will);
    const auto sent = steady_clock::now();
    co_await speaking.send(bytes, patience);
    check_will(co_await speaking.receive_u8(patience));
    answered(sent);
    next_ping = steady_clock::now();  // so that the clocks are compared before anything fails
    if (!std::exchange(is_held, true) && callbacks.on_held) callbacks.on_held(speaking.local_address());
  }

  awaitable<void> ping() {
    const auto sent = steady_clock::now();
    next_ping = sent + patience;
    const auto sent_at = system_clock::now();
    std::string bytes;
    store::encode_keep_alive(bytes);
    co_await speaking.send(bytes, patience);
    const auto reply = co_await speaking.receive(9, patience);
    const auto round_trip = steady_clock::now() - sent;
    check_will(static_cast<std::uint8_t>(reply[0]));
    const auto theirs = microseconds(static_cast<std::int64_t>(store::get_u64(reply.data() + 1)));
    const auto ours = std::chrono::duration_cast<microseconds>(sent_at.time_since_epoch() + round_trip / 2);
    clocks.add(theirs - ours, round_trip);
    answered(sent);
  }

  void check_will(std::uint8_t status) const {
    const auto will = static_cast<store::WillStatus>(status);
    if (will == store::WillStatus::kHeld || will == store::WillStatus::kResumed) return;
    throw Refused{"the store at " + options.place + " says that this node was given up"};
  }

  void answered(TimePoint sent) {
    extend_lease(sent);
    if (callbacks.on_answer) callbacks.on_answer(sent);
  }

  void end_farewell() {
    const auto done = std::move(on_left);
    close();
    if (done) done();
  }

  // ---- Listening ----------------------------------------------------------------------------------------------------

  awaitable<void> listen([[maybe_unused]] std::shared_ptr<Impl> self) {
    auto pause = kFirstPause;
    while (!is_closed) {
      try {
        co_await open(listening);
        while (!is_closed) {
          co_await read_order();
          pause = kFirstPause;
        }
      } catch (const Refused& refusal) {
        cut_off(refusal.why, false);
      } catch (const std::system_error& error) {
        if (is_closed) break;
        say_broken(error);
      }
      if (is_closed) break;
      co_await rest(listening_pause, pause);
    }
    listening.close();
  }

  awaitable<void> read_order() {
    std::string bytes;
    store::encode_mail_read(bytes, own_queue, next_order);
    co_await listening.send(bytes, patience);
    co_await listening.receive_u8(std::nullopt);
    const auto index = co_await listening.receive_u64(patience);
    orders.push_back(co_await listening.receive_bytes(options.keep_alive));
    next_order = index + 1;
    if (on_mail) on_mail();
  }

  // ---- Both ---------------------------------------------------------------------------------------------------------

  awaitable<void> open(StoreConnection& connection) {
    co_await connection.connect(options.addresses, patience);
    const store::Hello hello{
        store::kExtensionVersion, store::Role::kAgent, options.run_id, options.user, options.agent, options.epoch};
    const auto reply = co_await connection.hello(hello, options.authenticator.get(), patience);
    if (reply.status != store::HelloStatus::kWelcome) throw Refused{describe(reply)};
  }

  std::string describe(const store::HelloReply& reply) const {
    const auto where = "the store at " + options.place;
    switch (reply.status) {
      case store::HelloStatus::kOtherRun:
        return where + " belongs to another job, '" + reply.run_id + "'";
      case store::HelloStatus::kOtherUser:
        return where + " belongs to another user, " + reply.user;
      case store::HelloStatus::kOldEpoch:
        return where + " is a later one of this job (epoch " + std::to_string(reply.epoch) + ", not " +
               std::to_string(options.epoch) + ")";
      case store::HelloStatus::kServerIsOld:
        return where + " is of an old host that has been succeeded";
      default:
        return where + " refuses this agent (status " + std::to_string(static_cast<int>(reply.status)) + ")";
    }
  }

  void say_broken(const std::system_error& error) const {
    base::log::write_limited(base::log::Level::kInfo, "store link",
                             "the connection to the store at " + options.place + " broke (" + error.code().message() +
                                 "), connecting again");
  }

  awaitable<void> rest(asio::steady_timer& timer, milliseconds& pause) {
    timer.expires_after(pause);
    pause = std::min(pause * 2, kLongestPause);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  const StoreLinkOptions options;
  Callbacks callbacks;
  const std::string own_queue;
  const milliseconds patience;  ///< A third of the keep-alive: the pace of pings, and what one answer may take.
  StoreConnection speaking;
  StoreConnection listening;
  asio::steady_timer wake;
  asio::steady_timer listening_pause;
  asio::steady_timer speaking_pause;
  asio::steady_timer lease;
  asio::steady_timer farewell;
  std::error_code ignored;
  TimePoint next_ping{};
  ClockComparison clocks;
  std::deque<Push> outbox;
  std::uint64_t next_sequence = 0;
  std::deque<std::string> orders;
  std::uint64_t next_order = 0;
  std::function<void()> on_mail;
  std::function<void()> on_left;
  bool is_held = false;
  bool is_closed = false;
};

StoreLink::StoreLink(asio::io_context& loop, StoreLinkOptions options, Callbacks callbacks)
    : impl_(std::make_shared<Impl>(loop, std::move(options), std::move(callbacks))) {
  impl_->start(loop);
}

StoreLink::~StoreLink() {
  impl_->on_left = nullptr;
  impl_->close();
}

void StoreLink::post(const std::string& queue, const std::string& text) {
  if (queue != kInbox) throw std::logic_error("only the inbox is open to agents on other hosts, not " + queue);
  if (impl_->is_closed) return;
  impl_->outbox.push_back({impl_->next_sequence++, text});
  impl_->wake.cancel();
}

std::optional<std::string> StoreLink::take(const std::string& queue) {
  if (queue != impl_->own_queue || impl_->orders.empty()) return std::nullopt;
  auto text = std::move(impl_->orders.front());
  impl_->orders.pop_front();
  return text;
}

void StoreLink::watch(const std::string& queue, std::function<void()> on_mail) {
  if (queue == impl_->own_queue) impl_->on_mail = std::move(on_mail);
}

void StoreLink::leave(std::chrono::milliseconds limit, std::function<void()> done) {
  auto& impl = *impl_;
  if (impl.is_closed) return done();
  impl.callbacks = {};
  impl.on_left = std::move(done);
  impl.listening.close();
  impl.wake.cancel();
  impl.farewell.expires_after(limit);
  impl.farewell.async_wait([self = impl_](const std::error_code& error) {
    if (!error && !self->is_closed) self->end_farewell();
  });
}

std::chrono::microseconds StoreLink::clock_offset() const {
  return impl_->clocks.offset();
}

}  // namespace tensorplay::rendezvous
