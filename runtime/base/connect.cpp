// connect_to: all addresses of a host raced against each other, attempt after attempt, until the deadline.
#include "runtime/base/log.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <random>
#include <thread>

#include <netinet/in.h>

namespace tensorplay::base {

using distributed::SocketError;
using distributed::TimeoutError;
using Clock = Deadline::Clock;
using std::chrono::milliseconds;

namespace {

// A host behind a silent firewall must not hold up its other address.
constexpr milliseconds kStagger{250};
// The kernel repeats a lost first packet ever more rarely; a new attempt finds a booting host sooner.
constexpr milliseconds kLongestAttempt{4'000};

/// What became of one attempt at all addresses.
struct Attempt {
  UniqueFd fd;
  std::string reason;  ///< Why there is no fd; the first address's where several failed.
  bool waiting_can_help = false;
};

bool is_worth_a_wait(int error) {
  return error == ECONNREFUSED || error == ECONNRESET || error == ECONNABORTED || error == ETIMEDOUT ||
         error == EHOSTUNREACH || error == EHOSTDOWN || error == EAGAIN;
}

/// A connect that reached its own socket: with an ephemeral port as target, TCP can connect to itself.
bool is_connected_to_itself(int fd) {
  const auto local = SocketAddress::of_local_end(fd);
  const auto peer = SocketAddress::of_peer(fd);
  return local.size() == peer.size() && local.port() == peer.port() && local.host() == peer.host();
}

class Race {
 public:
  Race(std::vector<SocketAddress> addresses, Deadline deadline)
      : addresses_(std::move(addresses)), deadline_(earlier(deadline, Deadline::after(kLongestAttempt))) {}

  Attempt run() {
    std::size_t next = 0;
    auto next_start = Clock::now();
    while (!result_.fd) {
      if (next < addresses_.size() && (running_.empty() || Clock::now() >= next_start)) {
        start(addresses_[next++]);
        next_start = Clock::now() + kStagger;
        continue;
      }
      if (running_.empty()) break;
      if (deadline_.has_passed()) {
        note_failure(ETIMEDOUT);
        break;
      }
      wait(next < addresses_.size() ? earlier(deadline_, Deadline::at(next_start)) : deadline_);
    }
    return std::move(result_);
  }

 private:
  void start(const SocketAddress& address) {
    UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return note_failure(errno);
    if (::connect(fd.get(), address.data(), address.size()) == 0) return finish(std::move(fd));
    if (errno != EINPROGRESS) return note_failure(errno);
    running_.push_back(std::move(fd));
  }

  void wait(Deadline until) {
    std::vector<pollfd> waited;
    for (const auto& fd : running_) waited.push_back({fd.get(), POLLOUT, 0});
    if (::poll(waited.data(), waited.size(), until.poll_timeout_ms()) <= 0) return;
    for (std::size_t i = waited.size(); i-- > 0;) {
      if (waited[i].revents == 0) continue;
      UniqueFd fd = std::move(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) {
        note_failure(error);
      } else {
        finish(std::move(fd));
      }
    }
  }

  void finish(UniqueFd fd) {
    if (result_.fd) return;
    try {
      if (is_connected_to_itself(fd.get())) return note_failure(ECONNREFUSED);
    } catch (const SocketError&) {
      return note_failure(ECONNRESET);  // Gone already.
    }
    result_.fd = std::move(fd);
  }

  void note_failure(int error) {
    if (result_.reason.empty() || (is_worth_a_wait(error) && !result_.waiting_can_help)) {
      result_.reason = std::string(std::strerror(error)) + " (errno " + std::to_string(error) + ")";
    }
    result_.waiting_can_help = result_.waiting_can_help || is_worth_a_wait(error);
  }

  std::vector<SocketAddress> addresses_;
  Deadline deadline_;
  std::vector<UniqueFd> running_;
  Attempt result_;
};

Attempt attempt(const std::string& host, std::uint16_t port, Deadline deadline) {
  std::vector<SocketAddress> addresses;
  try {
    addresses = SocketAddress::resolve(host, port);
  } catch (const SocketError& error) {
    return {UniqueFd(), error.what(), true};
  }
  return Race(std::move(addresses), deadline).run();
}

std::string seconds_text(Clock::duration elapsed) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(elapsed).count());
  return text;
}

}  // namespace

UniqueFd connect_to(const std::string& host, std::uint16_t port, Deadline deadline, RetryPacing pacing) {
  const auto begin = Clock::now();
  std::minstd_rand random{std::random_device{}()};
  std::uniform_real_distribution<double> jitter(0.5, 1.5);
  double pause_ms = static_cast<double>(pacing.first.count());
  for (int number = 1;; ++number) {
    auto tried = attempt(host, port, deadline);
    if (tried.fd) {
      set_blocking(tried.fd.get(), true);
      set_no_delay(tried.fd.get());
      return std::move(tried.fd);
    }
    const auto where = "connecting to " + format_host_port(host, port);
    if (log::is_on(log::Level::kInfo)) {
      log::write_limited(log::Level::kInfo, where,
                         where + ": attempt " + std::to_string(number) + " failed: " + tried.reason);
    }
    if (!tried.waiting_can_help) throw SocketError(where + ": " + tried.reason);
    const auto pause = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double, std::milli>(pause_ms * jitter(random)));
    if (deadline.remaining() <= pause) {
      // The last moment before the deadline still gets its attempt, unless there is none left.
      if (!deadline.has_passed()) std::this_thread::sleep_for(deadline.remaining() / 2);
      if (deadline.has_passed() || deadline.remaining() < milliseconds(1)) {
        throw TimeoutError(where + ": timed out after " + seconds_text(Clock::now() - begin) + ": " + tried.reason);
      }
    } else {
      std::this_thread::sleep_for(pause);
    }
    pause_ms = std::min(pause_ms * pacing.growth, static_cast<double>(pacing.most.count()));
  }
}

}  // namespace tensorplay::base
