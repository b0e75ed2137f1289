#include "runtime/store/acceptor.hpp"

#include <cerrno>
#include <fcntl.h>

namespace tensorplay::store {

namespace {
base::UniqueFd open_reserve() {
  return base::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}
}  // namespace

Acceptor::Acceptor(base::UniqueFd listener) : listener_(std::move(listener)), reserve_(open_reserve()) {}

Acceptor::Outcome Acceptor::accept(base::UniqueFd& connection) {
  while (true) {
    connection.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) return Outcome::kAccepted;
    switch (errno) {
      case EAGAIN:
        return Outcome::kNothingThere;
      case EMFILE:
      case ENFILE: {
        if (!reserve_) reserve_ = open_reserve();
        if (!reserve_) return Outcome::kMustPause;
        reserve_.reset();
        base::UniqueFd turned_away(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        const bool was_there = static_cast<bool>(turned_away);
        turned_away.reset();
        reserve_ = open_reserve();
        return was_there ? Outcome::kTurnedAway : Outcome::kMustPause;
      }
      case EINTR:
      case ECONNABORTED:
      case EPROTO:
      case EPERM:
      case ENETDOWN:
      case ENETUNREACH:
      case EHOSTDOWN:
      case EHOSTUNREACH:
      case ENOPROTOOPT:
        continue;  // That connection has failed already; the next may not have.
      default:
        return Outcome::kMustPause;  // No memory, or nothing that can be mended here: it must not become a spin.
    }
  }
}

}  // namespace tensorplay::store
