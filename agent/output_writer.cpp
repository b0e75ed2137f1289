#include "agent/output_writer.hpp"

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <poll.h>
#include <vector>

#include <sys/ioctl.h>
#include <sys/uio.h>

namespace tensorplay::agent {
namespace {

/// Breaks a write that blocks: its handler does nothing, and it is installed without SA_RESTART.
int wake_signal() {
  return SIGRTMIN + 3;
}

void install_wake_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    sigemptyset(&action.sa_mask);
    ::sigaction(wake_signal(), &action, nullptr);
  });
}

void block_all_signals_but_wake() {
  sigset_t mask;
  sigfillset(&mask);
  sigdelset(&mask, wake_signal());
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

/// Errors after which a place may take bytes again; after any other nobody is there to read them.
bool may_recover(int error) {
  return error == ENOSPC || error == EDQUOT || error == EIO || error == ENOMEM;
}

}  // namespace

bool Quota::is_used_up() {
  if (waiting_.load() < limit_) return false;
  wants_room_.store(true);
  // A writer may have given room back between the two lines above, without seeing the wish.
  if (waiting_.load() <= limit_ / 2) wants_room_.store(false);
  return wants_room_.load();
}

void Quota::give_back(std::size_t bytes) {
  const std::size_t before = waiting_.fetch_sub(bytes);
  if (before - bytes > limit_ / 2 || !wants_room_.exchange(false)) return;
  const std::lock_guard lock(mutex_);
  if (on_room_) on_room_();
}

void Quota::forget_source() {
  const std::lock_guard lock(mutex_);
  on_room_ = nullptr;
}

struct OutputWriter::Item {
  std::shared_ptr<OutputTarget> target;  ///< Null for a fence.
  std::string bytes;
  Kind kind = Kind::kBytes;
  int owner = 0;
  std::shared_ptr<Quota> quota;
  std::function<void()> reached;
};

struct OutputWriter::State {
  OnError on_error;
  std::mutex mutex;
  std::condition_variable has_work;
  std::condition_variable has_ended_changed;
  std::deque<Item> queue;
  bool is_idle = true;     ///< Nothing queued, nothing being written.
  bool is_ending = false;  ///< End once the queue is empty.
  bool has_ended = false;
  std::atomic<bool> must_abandon{false};  ///< End now.
  std::atomic<std::uint64_t> bytes_done{0};

  void run() {
    block_all_signals_but_wake();
    std::unique_lock lock(mutex);
    while (!must_abandon) {
      if (queue.empty()) {
        is_idle = true;
        if (is_ending) break;
        has_work.wait(lock);
        continue;
      }
      std::deque<Item> batch;
      batch.swap(queue);
      lock.unlock();
      write_batch(batch);
      lock.lock();
    }
    has_ended = true;
    has_ended_changed.notify_all();
  }

  void write_batch(std::deque<Item>& batch) {
    std::vector<iovec> pieces;
    while (!batch.empty()) {
      Item& first = batch.front();
      if (first.reached) {
        if (!must_abandon) first.reached();
        batch.pop_front();
        continue;
      }
      if (first.target->screen) {
        write_to_terminal(first);
        finish_items(batch, 1);
        continue;
      }
      pieces.clear();
      for (Item& item : batch) {
        if (item.target != first.target || pieces.size() == 64) break;
        pieces.push_back({item.bytes.data(), item.bytes.size()});
      }
      write_pieces(*first.target, pieces);
      finish_items(batch, pieces.size());
    }
  }

  static void finish_items(std::deque<Item>& batch, std::size_t count) {
    for (; count > 0; --count) {
      if (batch.front().quota) batch.front().quota->give_back(batch.front().bytes.size());
      batch.pop_front();
    }
  }

  void write_to_terminal(const Item& item) {
    OutputTarget& target = *item.target;
    winsize size = {};
    if (::ioctl(target.fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) target.screen->set_width(size.ws_col);
    std::string out;
    switch (item.kind) {
      case Kind::kBytes:
        target.screen->raw(item.bytes, out);
        break;
      case Kind::kLines:
        target.screen->lines(item.owner, item.bytes, out);
        break;
      case Kind::kInPlace:
        target.screen->in_place(item.owner, item.bytes, out);
        break;
    }
    std::vector<iovec> pieces{{out.data(), out.size()}};
    write_pieces(target, pieces);
  }

  void write_pieces(OutputTarget& target, std::vector<iovec>& pieces) {
    std::size_t next = 0;
    while (next < pieces.size() && !must_abandon) {
      if (target.is_broken) break;
      const ssize_t written = ::writev(target.fd, &pieces[next], static_cast<int>(pieces.size() - next));
      if (written < 0) {
        if (errno == EINTR) continue;
        if (errno == EAGAIN) {
          // Somebody else made the console non-blocking; then waiting is up to us.
          pollfd writable{target.fd, POLLOUT, 0};
          ::poll(&writable, 1, -1);
          continue;
        }
        complain(target, errno);
        break;
      }
      bytes_done.fetch_add(static_cast<std::uint64_t>(written), std::memory_order_relaxed);
      std::size_t left = static_cast<std::size_t>(written);
      while (next < pieces.size() && left >= pieces[next].iov_len) left -= pieces[next++].iov_len;
      if (next < pieces.size()) {
        pieces[next].iov_base = static_cast<char*>(pieces[next].iov_base) + left;
        pieces[next].iov_len -= left;
      }
    }
    for (; next < pieces.size(); ++next) target.lost_bytes += pieces[next].iov_len;
  }

  void complain(OutputTarget& target, int error) {
    if (!may_recover(error)) target.is_broken = true;
    if (std::exchange(target.has_complained, true) || must_abandon) return;
    on_error(target, error);
  }
};

OutputWriter::OutputWriter(OnError on_error) : state_(std::make_shared<State>()) {
  state_->on_error = std::move(on_error);
}

OutputWriter::~OutputWriter() {
  stop(std::chrono::milliseconds(0));
}

void OutputWriter::push(Item item) {
  bool must_start = false;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->is_ending) return;
    state_->queue.push_back(std::move(item));
    must_start = !thread_.joinable();
    if (must_start) {
      install_wake_handler();
      state_->is_idle = false;
      thread_ = std::thread([state = state_] { state->run(); });
    } else if (std::exchange(state_->is_idle, false)) {
      state_->has_work.notify_one();
    }
  }
}

void OutputWriter::append(const std::shared_ptr<OutputTarget>& target, std::string bytes, Kind kind, int owner,
                          std::shared_ptr<Quota> quota) {
  if (bytes.empty() && kind != Kind::kInPlace) return;
  if (quota) quota->add(bytes.size());
  Item item;
  item.target = target;
  item.bytes = std::move(bytes);
  item.kind = kind;
  item.owner = owner;
  item.quota = std::move(quota);
  push(std::move(item));
}

void OutputWriter::fence(std::function<void()> reached) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->is_idle && !state_->is_ending) {
      Item item;
      item.reached = std::move(reached);
      state_->queue.push_back(std::move(item));
      return;
    }
  }
  reached();
}

bool OutputWriter::flush(std::chrono::milliseconds limit) {
  struct Reached {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_reached = false;
  };
  const auto reached = std::make_shared<Reached>();
  fence([reached] {
    const std::lock_guard lock(reached->mutex);
    reached->is_reached = true;
    reached->changed.notify_all();
  });
  std::unique_lock lock(reached->mutex);
  return reached->changed.wait_for(lock, limit, [&] { return reached->is_reached; });
}

void OutputWriter::stop(std::chrono::milliseconds limit) {
  if (!thread_.joinable()) return;
  bool has_ended = false;
  {
    std::unique_lock lock(state_->mutex);
    state_->is_ending = true;
    state_->has_work.notify_one();
    const auto is_over = [&] { return state_->has_ended; };
    has_ended = state_->has_ended_changed.wait_for(lock, limit, is_over);
    if (!has_ended) state_->must_abandon = true;
    // One signal may come just before the write that it should break, hence more than one.
    for (int tries = 0; !has_ended && tries < 200; ++tries) {
      ::pthread_kill(thread_.native_handle(), wake_signal());
      state_->has_work.notify_one();
      has_ended = state_->has_ended_changed.wait_for(lock, std::chrono::milliseconds(5), is_over);
    }
  }
  if (has_ended) {
    thread_.join();
  } else {
    thread_.detach();  // It hangs in the kernel for good; the end of the process will take it.
  }
}

std::uint64_t OutputWriter::bytes_done() const {
  return state_->bytes_done.load(std::memory_order_relaxed);
}

}  // namespace tensorplay::agent
