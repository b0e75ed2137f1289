#include "rendezvous/discovery/store_probe.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unistd.h>

#include <sys/socket.h>

namespace tensorplay::rendezvous {

using base::SocketAddress;
using base::UniqueFd;
using std::chrono::milliseconds;

namespace {

// As connect_to: a host behind a silent firewall must not hold up its other address, and a new attempt finds a booting
// host sooner than the kernel's ever rarer repetitions.
constexpr milliseconds kStagger{250};
constexpr milliseconds kConnectTime{4'000};
// A store answers from memory; one that is stopped never does.
constexpr milliseconds kAnswerTime{5'000};
// For the rest of a stranger's first line.
constexpr milliseconds kStrangerTime{200};

bool is_connected_to_itself(int fd) {
  const auto local = SocketAddress::of_local_end(fd);
  const auto peer = SocketAddress::of_peer(fd);
  return local.size() == peer.size() && local.port() == peer.port() && local.host() == peer.host();
}

}  // namespace

StoreProbe::StoreProbe(std::vector<SocketAddress> addresses, GreetingOptions options, Clock::time_point now)
    : addresses_(std::move(addresses)),
      options_(std::move(options)),
      next_start_(now),
      connect_by_(now + kConnectTime) {
  advance(now);
}

void StoreProbe::add_waits(std::vector<pollfd>& waits) const {
  for (const auto& fd : connecting_) waits.push_back({fd.get(), POLLOUT, 0});
  if (fd_) waits.push_back({fd_.get(), static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT), 0});
}

std::optional<StoreProbe::Clock::time_point> StoreProbe::next_timer() const {
  if (is_over()) return std::nullopt;
  if (fd_) return answer_by_;
  return next_address_ < addresses_.size() ? std::min(next_start_, connect_by_) : connect_by_;
}

void StoreProbe::advance(Clock::time_point now) {
  if (is_over()) return;
  if (!fd_) check_connecting(now);
  while (!fd_ && next_address_ < addresses_.size() && (connecting_.empty() || now >= next_start_)) start_next(now);
  if (fd_) return talk(now);
  if (connecting_.empty()) {
    finding_ = {Answer::kUnreachable, 0, failure_};
  } else if (now >= connect_by_) {
    note_failure(ETIMEDOUT);
    connecting_.clear();
    finding_ = {Answer::kUnreachable, 0, failure_};
  }
}

void StoreProbe::start_next(Clock::time_point now) {
  const auto& address = addresses_[next_address_++];
  next_start_ = now + kStagger;
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return note_failure(errno);
  if (::connect(fd.get(), address.data(), address.size()) == 0) return connected(std::move(fd), now);
  if (errno != EINPROGRESS) return note_failure(errno);
  connecting_.push_back(std::move(fd));
}

void StoreProbe::check_connecting(Clock::time_point now) {
  std::vector<pollfd> waits;
  add_waits(waits);
  if (waits.empty() || ::poll(waits.data(), waits.size(), 0) <= 0) return;
  for (std::size_t i = waits.size(); i-- > 0;) {
    if (waits[i].revents == 0) continue;
    UniqueFd fd = std::move(connecting_[i]);
    connecting_.erase(connecting_.begin() + static_cast<std::ptrdiff_t>(i));
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      note_failure(error);
    } else if (!fd_) {
      connected(std::move(fd), now);
    }
  }
}

void StoreProbe::connected(UniqueFd fd, Clock::time_point now) {
  try {
    if (is_connected_to_itself(fd.get())) return note_failure(ECONNREFUSED);
    peer_ = SocketAddress::of_peer(fd.get()).host();
  } catch (const distributed::SocketError&) {
    return note_failure(ECONNRESET);  // Gone already.
  }
  base::set_no_delay(fd.get());
  connecting_.clear();
  fd_ = std::move(fd);
  answer_by_ = now + kAnswerTime;
  greeting_.emplace(options_, static_cast<std::uint32_t>(::getpid()));
}

void StoreProbe::note_failure(int error) {
  failure_ = std::strerror(error);
}

void StoreProbe::talk(Clock::time_point now) {
  const bool was_hearing_a_stranger = greeting_->is_hearing_a_stranger();
  send_output();
  receive();
  send_output();
  if (greeting_->is_hearing_a_stranger() && !was_hearing_a_stranger)
    answer_by_ = std::min(answer_by_, now + kStrangerTime);
  if (now >= answer_by_) greeting_->give_up("accepts connections and does not answer");
  if (!greeting_->is_over()) return;
  finding_ = greeting_->finding();
  fd_.reset();
}

void StoreProbe::send_output() {
  unsent_ += greeting_->take_output();
  while (!unsent_.empty()) {
    const auto sent = ::send(fd_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      unsent_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno != EINTR) {
      // A broken connection shows in receive(), after what the peer said before.
      if (errno != EAGAIN) unsent_.clear();
      return;
    }
  }
}

void StoreProbe::receive() {
  std::array<char, 4096> buffer;
  while (!greeting_->is_over()) {
    const auto got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
      greeting_->receive({buffer.data(), static_cast<std::size_t>(got)});
    } else if (got == 0) {
      return greeting_->peer_closed("end of stream");
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      return greeting_->peer_closed(std::strerror(errno));
    }
  }
}

}  // namespace tensorplay::rendezvous
