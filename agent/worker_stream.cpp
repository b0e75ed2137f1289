#include "agent/worker_stream.hpp"

#include <asio/io_context.hpp>
#include <asio/post.hpp>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace tensorplay::agent {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kHeldAtMost{100};          ///< An unfinished line, so that others' lines do not cut it in two.
constexpr milliseconds kQuietBeforePartial{200};  ///< A prompt: text that stopped in the middle of a line.
constexpr milliseconds kRefreshOnTerminal{100};
constexpr milliseconds kRefreshInLog{5000};  ///< A progress bar becomes a line in a log this often at most.
constexpr std::size_t kHeldBytes = std::size_t{64} << 10;

}  // namespace

WorkerStream::WorkerStream(StreamShared& shared, base::UniqueFd read_end, StreamRoutes routes)
    : shared_(shared), pipe_(shared.loop), routes_(std::move(routes)), last_shown_(Clock::now()) {
  if (routes_.prefix) assembly_.emplace(*routes_.prefix);
  ::fcntl(read_end.get(), F_SETFL, ::fcntl(read_end.get(), F_GETFL) | O_NONBLOCK);
  pipe_.assign(read_end.get());
  (void)read_end.release();
}

void WorkerStream::start() {
  quota_ = std::make_shared<Quota>(shared_.quota, [weak = weak_from_this(), &loop = shared_.loop] {
    asio::post(loop, [weak] {
      const auto self = weak.lock();
      if (!self || self->state_ != State::kPaused) return;
      self->state_ = State::kTicking;
      self->read_some(Clock::now());
    });
  });
  wait_readable();
}

void WorkerStream::wait_readable() {
  state_ = State::kWaiting;
  pipe_.async_wait(asio::posix::stream_descriptor::wait_read,
                   [self = shared_from_this()](const asio::error_code& error) {
                     if (error || self->state_ != State::kWaiting) return;
                     self->read_some(Clock::now());
                   });
}

void WorkerStream::tick(Clock::time_point now) {
  if (state_ == State::kTicking) read_some(now);
}

void WorkerStream::read_some(Clock::time_point now) {
  // A few full reads at most, then the others get their turn.
  for (int reads = 0; reads < 4; ++reads) {
    if (quota_->is_used_up()) {
      state_ = State::kPaused;
      return;
    }
    const ssize_t got = ::read(pipe_.native_handle(), shared_.buffer.data(), shared_.buffer.size());
    if (got > 0) {
      take({shared_.buffer.data(), static_cast<std::size_t>(got)}, now);
      if (static_cast<std::size_t>(got) < shared_.buffer.size() / 2) break;
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || errno != EAGAIN) {
      end();
      return;
    }
    show_unfinished(now);
    const bool is_something_due = !held_.empty() || (assembly_ && routes_.console && routes_.console->is_terminal() &&
                                                     assembly_->unfinished() != shown_unfinished_);
    if (!is_something_due) {
      wait_readable();
      return;
    }
    break;
  }
  state_ = State::kTicking;
  shared_.want_tick();
}

void WorkerStream::take(std::string_view bytes, Clock::time_point now) {
  last_data_ = now;
  if (routes_.tail) routes_.tail->add(bytes);
  if (routes_.file) routes_.file->bytes(std::string(bytes), quota_);
  if (routes_.console && routes_.console->target == shared_.stderr_target) {
    shared_.shown_on_stderr += bytes.size();
    if (routes_.tail) routes_.tail->shown_until = shared_.shown_on_stderr;
  }
  if (!routes_.console && !routes_.filtered) return;
  if (assembly_) {
    take_lines(bytes, now);
  } else {
    take_as_it_comes(bytes);
  }
}

void WorkerStream::take_lines(std::string_view bytes, Clock::time_point now) {
  std::string lines;
  lines.reserve(bytes.size() + bytes.size() / 8 + 256);
  assembly_->feed(bytes, lines);
  if (!lines.empty()) {
    last_shown_ = now;
    shown_unfinished_.clear();
    shown_refreshes_ = assembly_->refreshes();
    write_lines(std::move(lines));
  }
  show_unfinished(now);
}

void WorkerStream::write_lines(std::string lines) {
  if (routes_.filtered) {
    std::string hits;
    for (std::size_t start = 0; start < lines.size();) {
      const std::size_t next = lines.find('\n', start) + 1;
      const std::string_view line(lines.data() + start, next - start);
      const std::string_view text = line.substr(assembly_->prefix().size());
      for (const std::string& filter : routes_.filters) {
        if (text.find(filter) == std::string_view::npos) continue;
        hits += line;
        break;
      }
      start = next;
    }
    if (!hits.empty()) routes_.filtered->bytes(std::move(hits), quota_);
  }
  if (routes_.console) routes_.console->lines(std::move(lines), routes_.owner, quota_);
}

void WorkerStream::show_unfinished(Clock::time_point now) {
  if (!assembly_) {
    if (held_.empty() || now - last_data_ < kHeldAtMost) return;
    routes_.console->bytes(std::exchange(held_, {}), quota_);
    return;
  }
  if (!routes_.console) return;
  const bool is_new_refresh = assembly_->refreshes() != shown_refreshes_;
  if (!routes_.console->is_terminal()) {
    if (!is_new_refresh || now - last_shown_ < kRefreshInLog) return;
    shown_refreshes_ = assembly_->refreshes();
    const std::string_view text = assembly_->unfinished();
    if (text.empty()) return;
    last_shown_ = now;
    routes_.console->lines(assembly_->prefix() + std::string(text) + "\n", routes_.owner, quota_);
    return;
  }
  const std::string_view text = assembly_->unfinished();
  if (text == shown_unfinished_) return;
  if (now - last_shown_ < kRefreshOnTerminal) return;
  if (!is_new_refresh && now - last_data_ < kQuietBeforePartial) return;
  last_shown_ = now;
  shown_refreshes_ = assembly_->refreshes();
  shown_unfinished_ = text;
  routes_.console->in_place(text.empty() ? std::string() : assembly_->prefix() + shown_unfinished_, routes_.owner);
}

void WorkerStream::take_as_it_comes(std::string_view bytes) {
  if (!routes_.console) return;
  if (routes_.is_alone) {
    routes_.console->bytes(std::string(bytes), quota_);
    return;
  }
  // Whole lines at once; the rest a moment later, or with its end.
  const std::size_t last_end = bytes.find_last_of("\r\n");
  if (last_end != std::string_view::npos) {
    std::string block = std::exchange(held_, {});
    block += bytes.substr(0, last_end + 1);
    routes_.console->bytes(std::move(block), quota_);
    bytes.remove_prefix(last_end + 1);
  }
  held_ += bytes;
  if (held_.size() > kHeldBytes) routes_.console->bytes(std::exchange(held_, {}), quota_);
}

void WorkerStream::end() {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  if (assembly_) {
    std::string lines;
    assembly_->finish(lines);
    if (!lines.empty()) {
      write_lines(std::move(lines));
    } else if (routes_.console && routes_.console->is_terminal() && !shown_unfinished_.empty()) {
      routes_.console->in_place("", routes_.owner);
    }
  } else if (!held_.empty()) {
    routes_.console->bytes(std::exchange(held_, {}), quota_);
  }
  quota_->forget_source();
  asio::error_code ignored;
  pipe_.close(ignored);
  shared_.on_end();
}

void WorkerStream::give_up() {
  if (state_ == State::kEnded) return;
  constexpr std::size_t kAtMost = std::size_t{4} << 20;  // More than any pipe holds; a daemon may go on writing.
  for (std::size_t total = 0; total < kAtMost;) {
    const ssize_t got = ::read(pipe_.native_handle(), shared_.buffer.data(), shared_.buffer.size());
    if (got <= 0) break;
    take({shared_.buffer.data(), static_cast<std::size_t>(got)}, Clock::now());
    total += static_cast<std::size_t>(got);
  }
  end();
}

}  // namespace tensorplay::agent
