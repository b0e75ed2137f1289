#include "rendezvous/discovery/name_lookup.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <resolv.h>
#include <unistd.h>

#include <sys/eventfd.h>

namespace tensorplay::rendezvous {

struct NameLookup::Shared {
  base::UniqueFd done_fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> is_done = false;  ///< Set last: what is below is then complete.
  std::vector<base::SocketAddress> addresses;
  std::string error;

  void answer(const std::string& host, std::uint16_t port) {
    try {
      addresses = base::SocketAddress::resolve(host, port);
    } catch (const distributed::SocketError& failure) {
      error = failure.what();
    }
    is_done = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(done_fd.get(), &one, sizeof one);
  }
};

namespace {

/// Threads whose answer nobody waits for. Those that have ended are joined when the next one comes; the last ones end
/// with the process, which must not wait for a resolver: so this is never destroyed.
class Abandoned {
 public:
  static Abandoned& instance() {
    static auto* const abandoned = new Abandoned;
    return *abandoned;
  }
  void keep(std::thread thread, std::shared_ptr<std::atomic<bool>> is_done) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](Entry& entry) {
      if (!*entry.is_done) return false;
      entry.thread.join();
      return true;
    });
    entries_.push_back({std::move(thread), std::move(is_done)});
  }

 private:
  struct Entry {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> is_done;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

/// A name server that is gone must not hold up the next one for the usual five seconds, twice: we ask again anyway.
void shorten_patience_of_resolver() {
  if (::res_init() != 0) return;
  _res.retrans = std::min(_res.retrans, 2);
  _res.retry = 1;
}

bool is_literal(const std::string& host) {
  return host.find(':') != std::string::npos || host.find_first_not_of("0123456789.") == std::string::npos;
}

}  // namespace

NameLookup::NameLookup(const std::string& host, std::uint16_t port) : shared_(std::make_shared<Shared>()) {
  if (!shared_->done_fd) throw distributed::SocketError(std::string("no event descriptor: ") + std::strerror(errno));
  if (is_literal(host)) {
    shared_->answer(host, port);
    return;
  }
  // The process's signals are for those who wait for them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([shared = shared_, host, port] {
    ::pthread_setname_np(::pthread_self(), "tp-resolve");
    shorten_patience_of_resolver();
    shared->answer(host, port);
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

NameLookup::~NameLookup() {
  if (!thread_.joinable()) return;
  if (shared_->is_done) {
    thread_.join();
  } else {
    Abandoned::instance().keep(std::move(thread_), std::shared_ptr<std::atomic<bool>>(shared_, &shared_->is_done));
  }
}

int NameLookup::fd() const {
  return shared_->done_fd.get();
}

bool NameLookup::is_done() const {
  return shared_->is_done;
}

const std::vector<base::SocketAddress>& NameLookup::addresses() const {
  return shared_->addresses;
}

const std::string& NameLookup::error() const {
  return shared_->error;
}

}  // namespace tensorplay::rendezvous
