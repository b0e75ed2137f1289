#include "agent/agent_link.hpp"

#include "agent/guardian_wire.hpp"
#include "agent/signal_intake.hpp"

#include <asio/posix/stream_descriptor.hpp>

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <signal.h>
#include <system_error>

#include <sys/socket.h>

namespace tensorplay::agent {

namespace {

std::set<int> joined(std::set<int> first, const std::set<int>& second) {
  first.insert(second.begin(), second.end());
  return first;
}

void send_message(int socket, const AgentMessage& message, int flags) {
  const auto bytes = encode(message);
  ::send(socket, bytes.data(), bytes.size(), flags | MSG_NOSIGNAL);
}

/// Asio closes what it is given, and the socket must stay ours for the last word.
int duplicate(int fd) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) throw std::system_error(errno, std::generic_category(), "dup");
  return copy;
}

}  // namespace

/// Lives as long as a wait of it is pending.
struct AgentLink::Listener : std::enable_shared_from_this<AgentLink::Listener> {
  Listener(asio::io_context& loop, int socket, const std::set<int>& stop_signals, const std::set<int>& all,
           Callbacks callbacks_in)
      : requests(stop_signals),
        own_signals(all),
        callbacks(std::move(callbacks_in)),
        messages(loop, duplicate(socket)),
        signals(loop, duplicate(own_signals.fd())) {}

  void wait_for_messages() {
    messages.async_wait(asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](std::error_code error) {
      if (error || self->closed) return;
      if (self->read_messages()) self->wait_for_messages();
    });
  }

  void wait_for_signals() {
    signals.async_wait(asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](std::error_code error) {
      if (error || self->closed) return;
      while (const auto received = self->own_signals.take()) {
        self->arrived({received->signal, StopRequests::Place::kAgent, received->from_step_daemon});
      }
      if (!self->closed) self->wait_for_signals();
    });
  }

  /// False when there will be no more.
  bool read_messages() {
    while (!closed) {
      SignalMessage message;
      const ssize_t got = recv(messages.native_handle(), &message, sizeof message, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
      if (got != sizeof message) {
        if (callbacks.on_guardian_lost) callbacks.on_guardian_lost();
        return false;
      }
      if (message.signal == SIGTSTP || message.signal == SIGCONT) {
        if (callbacks.on_notify) callbacks.on_notify(message.signal);
      } else {
        arrived({message.signal, StopRequests::Place::kGuardian, message.from_step_daemon != 0});
      }
    }
    return false;
  }

  void arrived(const StopRequests::Arrival& arrival) {
    if (closed) return;
    const StopRequests::Action action = requests.apply(arrival, std::chrono::steady_clock::now());
    if (action == StopRequests::Action::kNone) return;
    if (action == StopRequests::Action::kNotify) {
      if (callbacks.on_notify) callbacks.on_notify(arrival.signal);
    } else if (callbacks.on_stop) {
      callbacks.on_stop(arrival.signal, action == StopRequests::Action::kForce, arrival.from_step_daemon);
    }
  }

  StopRequests requests;
  SignalIntake own_signals;
  const Callbacks callbacks;
  asio::posix::stream_descriptor messages;
  asio::posix::stream_descriptor signals;
  bool closed = false;
};

AgentLink::AgentLink(base::UniqueFd socket, const std::set<int>& stop_signals, const std::set<int>& notifications)
    : socket_(std::move(socket)), stop_signals_(stop_signals), notifications_(notifications) {}

AgentLink::~AgentLink() {
  close();
}

void AgentLink::listen(asio::io_context& loop, Callbacks callbacks) {
  const auto listener = std::make_shared<Listener>(loop, socket_.get(), stop_signals_,
                                                   joined(stop_signals_, notifications_), std::move(callbacks));
  listener->wait_for_messages();
  listener->wait_for_signals();
  listener_ = listener;
}

void AgentLink::close() {
  const auto listener = listener_.lock();
  if (!listener) return;
  listener->closed = true;
  listener->messages.close();
  listener->signals.close();
}

void AgentLink::hold(const AgentLease& lease) {
  send_message(socket_.get(), lease, 0);
}

void AgentLink::beat() {
  // A guardian that is stopped reads nothing: it must not stop the agent too.
  send_message(socket_.get(), Heartbeat{}, MSG_DONTWAIT);
}

void AgentLink::send_result(const AgentResult& result) const {
  send_message(socket_.get(), result, 0);
}

}  // namespace tensorplay::agent
