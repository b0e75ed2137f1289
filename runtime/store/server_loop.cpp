#include "runtime/store/server_loop.hpp"

#include "runtime/base/log.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <sched.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

namespace tensorplay::store {

namespace {

constexpr std::uint64_t kListenerTag = ~std::uint64_t{0};
constexpr std::uint64_t kWakeTag = kListenerTag - 1;
constexpr std::size_t kEventsPerTurn = 256;
constexpr std::size_t kAcceptsPerTurn = 256;
constexpr std::size_t kBufferBytes = 64 << 10;
// One peer that sends without end must not keep the others from being read.
constexpr int kReadsPerTurn = 8;
// Replies to requests sent in a row go out together, but not without bound.
constexpr std::size_t kFlushBytes = 256 << 10;
// A peer whose host has died without a word is noticed after half an hour; its memory is all that it costs.
constexpr int kKeepAliveIdleSeconds = 1200;
constexpr int kKeepAliveIntervalSeconds = 60;
constexpr int kKeepAliveProbes = 10;

[[noreturn]] void throw_errno(const char* what) {
  throw distributed::SocketError(std::string("store server: ") + what + ": " + std::strerror(errno));
}

bool has_cpu_to_spare() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  return ::sched_getaffinity(0, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) > 1;
}

void add_to_epoll(int epoll, int fd, std::uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) throw_errno("epoll_ctl");
}

void set_peer_options(int fd) {
  base::set_no_delay(fd);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepAliveIdleSeconds, sizeof kKeepAliveIdleSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAliveIntervalSeconds, sizeof kKeepAliveIntervalSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepAliveProbes, sizeof kKeepAliveProbes);
}

std::int64_t unix_micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ServerLoop::ServerLoop(base::UniqueFd listener, ServiceOptions options, std::size_t max_connections,
                       Callbacks callbacks)
    : service_([this, &options] {
        options.on_newer_epoch = [this](std::uint64_t epoch) { newer_epoch_ = epoch; };
        return std::move(options);
      }()),
      acceptor_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      callbacks_(std::move(callbacks)),
      buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)),
      max_connections_(max_connections),
      now_(Clock::now()),
      pacer_(has_cpu_to_spare()) {
  if (!epoll_ || !wake_) throw_errno("its descriptors");
  add_to_epoll(epoll_.get(), acceptor_.fd(), kListenerTag);
  add_to_epoll(epoll_.get(), wake_.get(), kWakeTag);
}

ServerLoop::~ServerLoop() {
  const std::lock_guard lock(mutex_);
  for (auto& connection : connections_) {
    if (connection) close(*connection);
  }
}

void ServerLoop::run() {
  std::array<epoll_event, kEventsPerTurn> events;
  int timeout = -1;
  while (true) {
    const bool is_spinning = pacer_.should_spin(Clock::now());
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), is_spinning ? 0 : timeout);
    if (count == 0 && is_spinning) continue;
    std::unique_lock lock(mutex_);
    if (is_stopping_) return;
    now_ = Clock::now();
    for (int i = 0; i < count; ++i) serve(events[i].data.u64, events[i].events);
    if (count > 0) pacer_.on_traffic(now_);
    if (accept_again_at_ && now_ >= *accept_again_at_) resume_accepting();
    decide_wills();
    flush_dirty();
    timeout = sleep_ms();
    run_callbacks(lock);
  }
}

void ServerLoop::run_callbacks(std::unique_lock<std::mutex>& lock) {
  const auto filled = service_.mailboxes().take_filled();
  const auto newer_epoch = std::exchange(newer_epoch_, std::nullopt);
  const bool has_no_wills = is_watching_wills_ && service_.will_count() == 0;
  if (has_no_wills) is_watching_wills_ = false;
  lock.unlock();
  for (const auto& mailbox : filled) callbacks_.on_filled(mailbox);
  if (newer_epoch && callbacks_.on_newer_epoch) callbacks_.on_newer_epoch(*newer_epoch);
  if (has_no_wills && callbacks_.on_no_wills) callbacks_.on_no_wills();
}

void ServerLoop::stop() {
  const std::lock_guard lock(mutex_);
  is_stopping_ = true;
  wake();
}

void ServerLoop::begin_round() {
  const std::lock_guard lock(mutex_);
  now_ = Clock::now();
  // What has connected but is not accepted yet belongs to the old round too.
  accept_waiting(std::numeric_limits<std::size_t>::max());
  service_.begin_round();
  for (auto& connection : connections_) {
    if (connection && connection->session.used_workers_table) close(*connection);
  }
  flush_dirty();
}

void ServerLoop::allow_hosts(std::vector<std::string> addresses) {
  const std::lock_guard lock(mutex_);
  now_ = Clock::now();
  allowed_hosts_ = std::move(addresses);
  for (auto& connection : connections_) {
    if (!connection) continue;
    auto& session = connection->session;
    session.is_outside_round = is_outside_round(session);
    if (session.is_outside_round && session.used_workers_table) close(*connection);
  }
  flush_dirty();
}

void ServerLoop::push(std::string_view mailbox, std::string_view value) {
  const std::lock_guard lock(mutex_);
  service_.push(mailbox, std::string(value));
  flush_dirty();
  if (service_.mailboxes().has_filled()) wake();
}

std::optional<std::string> ServerLoop::try_pop(std::string_view mailbox) {
  const std::lock_guard lock(mutex_);
  return service_.try_pop(mailbox);
}

void ServerLoop::watch(const std::string& mailbox, bool is_watched) {
  const std::lock_guard lock(mutex_);
  if (!is_watched) return service_.mailboxes().unwatch(mailbox);
  service_.mailboxes().watch(mailbox);
  if (service_.mailboxes().has_filled()) wake();
}

void ServerLoop::watch_for_no_wills() {
  const std::lock_guard lock(mutex_);
  is_watching_wills_ = true;
  wake();
}

std::optional<ServerLoop::Clock::time_point> ServerLoop::first_use() const {
  const std::lock_guard lock(mutex_);
  return service_.first_use();
}

std::size_t ServerLoop::connection_count() const {
  const std::lock_guard lock(mutex_);
  return connection_count_;
}

std::size_t ServerLoop::key_count() const {
  const std::lock_guard lock(mutex_);
  return service_.keys().size();
}

std::size_t ServerLoop::waiter_count() const {
  const std::lock_guard lock(mutex_);
  return service_.keys().waiter_count();
}

void ServerLoop::serve(std::uint64_t tag, std::uint32_t events) {
  if (tag == kListenerTag) return accept_waiting(kAcceptsPerTurn);
  if (tag == kWakeTag) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
    return;
  }
  Connection* connection = find(tag);
  if (connection == nullptr) return;  // Closed since epoll spoke of it.
  if ((events & EPOLLOUT) != 0 && !flush(*connection)) return close(*connection);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_from(*connection);
}

void ServerLoop::accept_waiting(std::size_t most) {
  for (std::size_t i = 0; i < most; ++i) {
    base::UniqueFd fd;
    switch (acceptor_.accept(fd)) {
      case Acceptor::Outcome::kAccepted:
        open(std::move(fd));
        break;
      case Acceptor::Outcome::kNothingThere:
        return;
      case Acceptor::Outcome::kTurnedAway:
        base::log::write_limited(base::log::Level::kWarning, "store descriptors",
                                 "store: out of file descriptors; a connection was turned away (raise ulimit -n)");
        break;
      case Acceptor::Outcome::kMustPause:
        return pause_accepting();
    }
  }
}

void ServerLoop::open(base::UniqueFd fd) {
  if (connection_count_ >= max_connections_) {
    base::log::write_limited(base::log::Level::kWarning, "store connections",
                             "store: a connection was turned away: " + std::to_string(max_connections_) +
                                 " are open, and that is the limit");
    return;
  }
  set_peer_options(fd.get());
  const auto slot = take_slot();
  auto connection = std::make_unique<Connection>();
  connection->fd = std::move(fd);
  connection->session.id = std::uint64_t{++generations_[slot]} << 32 | slot;
  connection->session.peer = base::SocketAddress::of_peer_or_empty(connection->fd.get()).host();
  connection->session.is_outside_round = is_outside_round(connection->session);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = connection->session.id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->fd.get(), &event) != 0) {
    free_slots_.push_back(slot);  // The kernel has no room to watch one more: that one is turned away.
    return;
  }
  service_.opened(connection->session);
  connections_[slot] = std::move(connection);
  ++connection_count_;
}

std::uint32_t ServerLoop::take_slot() {
  if (free_slots_.empty()) {
    connections_.emplace_back();
    generations_.push_back(0);
    return static_cast<std::uint32_t>(connections_.size() - 1);
  }
  const auto slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

bool ServerLoop::is_outside_round(const Session& session) const {
  if (allowed_hosts_.empty() || agents_hosts_.contains(session.peer)) return false;
  return std::find(allowed_hosts_.begin(), allowed_hosts_.end(), session.peer) == allowed_hosts_.end();
}

void ServerLoop::note_agent(Connection& connection) {
  const auto& session = connection.session;
  if (connection.is_agents || !session.said_hello || session.role != Role::kAgent) return;
  connection.is_agents = true;
  ++agents_hosts_[session.peer];
}

void ServerLoop::read_from(Connection& connection) {
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const auto got = ::recv(connection.fd.get(), buffer_.get(), kBufferBytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return close(connection);
    if (!handle_input(connection, {buffer_.get(), static_cast<std::size_t>(got)})) return;
    if (static_cast<std::size_t>(got) < kBufferBytes) return;
  }
}

bool ServerLoop::handle_input(Connection& connection, std::string_view data) {
  std::optional<std::string> refusal;
  try {
    Session& session = connection.session;
    while (Request* request = connection.parser.next(data)) {
      // Its agent may have come since it connected.
      if (session.is_outside_round) session.is_outside_round = is_outside_round(session);
      if (connection.session.output.size() > kFlushBytes && !flush(connection)) {
        close(connection);
        return false;
      }
      refusal = service_.handle(connection.session, *request, now_, unix_micros());
      if (refusal) break;
      note_agent(connection);
    }
  } catch (const std::exception& error) {
    refusal = std::string("its request could not be served: ") + error.what();
  }
  if (!connection.parser.error().empty()) refusal = connection.parser.error();
  if (!refusal) return true;
  refuse(connection, *refusal);
  return false;
}

bool ServerLoop::flush(Connection& connection) {
  auto& output = connection.session.output;
  while (!output.empty()) {
    std::array<iovec, 64> pieces;
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = output.fill(pieces.data(), pieces.size());
    const auto sent = ::sendmsg(connection.fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      output.consume(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      want_to_write(connection, true);
      return true;
    } else if (errno != EINTR) {
      return false;
    }
  }
  want_to_write(connection, false);
  return true;
}

void ServerLoop::flush_dirty() {
  // Closing one connection can release the wait of another, so there may be more after each pass.
  while (service_.has_dirty()) {
    service_.take_dirty(flushing_);
    for (Session* session : flushing_) {
      session->is_dirty = false;
      Connection& connection = *find(session->id);
      if (!connection.wants_to_write && !flush(connection)) close(connection);
    }
  }
}

void ServerLoop::refuse(Connection& connection, const std::string& reason) {
  const auto peer = base::SocketAddress::of_peer_or_empty(connection.fd.get());
  // What strangers do must not hide what our own ends are told; how a reason begins tells its kind.
  const auto kind = connection.session.has_tried_hello ? reason.substr(0, 12) : std::string("store refusal");
  base::log::write_limited(base::log::Level::kWarning, kind,
                           "store: closed the connection of " + peer.to_string() + ": " + reason);
  flush(connection);
  close(connection);
}

void ServerLoop::close(Connection& connection) {
  service_.closed(connection.session, now_);
  if (connection.is_agents) {
    const auto host = agents_hosts_.find(connection.session.peer);
    if (host != agents_hosts_.end() && --host->second == 0) agents_hosts_.erase(host);
  }
  // A child between fork and exec holds a copy of the descriptor: say explicitly what closing would only imply.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.fd.get(), nullptr);
  ::shutdown(connection.fd.get(), SHUT_RDWR);
  const auto slot = static_cast<std::uint32_t>(connection.session.id);
  connections_[slot].reset();
  free_slots_.push_back(slot);
  --connection_count_;
  if (accept_again_at_) resume_accepting();
}

void ServerLoop::decide_wills() {
  const auto due_at = service_.next_tick();
  if (!due_at || *due_at > now_) return;
  // Whatever has come in while we were late speaks for its sender.
  const auto asked_at = now_;
  accept_waiting(kAcceptsPerTurn);
  for (const auto id : service_.due_wills(asked_at)) {
    if (Connection* connection = find(id)) read_from(*connection);
  }
  service_.tick(asked_at);
}

void ServerLoop::pause_accepting() {
  if (!accept_again_at_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, acceptor_.fd(), nullptr);
  accept_again_at_ = now_ + Acceptor::kPause;
}

void ServerLoop::resume_accepting() {
  accept_again_at_.reset();
  add_to_epoll(epoll_.get(), acceptor_.fd(), kListenerTag);
}

void ServerLoop::want_to_write(Connection& connection, bool wants) {
  if (connection.wants_to_write == wants) return;
  connection.wants_to_write = wants;
  epoll_event event{};
  event.events = wants ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = connection.session.id;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd.get(), &event);
}

ServerLoop::Connection* ServerLoop::find(std::uint64_t id) {
  const auto slot = static_cast<std::uint32_t>(id);
  if (slot >= connections_.size() || !connections_[slot] || connections_[slot]->session.id != id) return nullptr;
  return connections_[slot].get();
}

int ServerLoop::sleep_ms() const {
  auto deadline = distributed::Deadline::never();
  if (const auto tick = service_.next_tick()) deadline = distributed::Deadline::at(*tick);
  if (accept_again_at_) deadline = earlier(deadline, distributed::Deadline::at(*accept_again_at_));
  return deadline.poll_timeout_ms();
}

void ServerLoop::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

}  // namespace tensorplay::store
