#include "agent/output_drain.hpp"

#include <asio/post.hpp>

#include <mutex>

namespace tensorplay::agent {

namespace {

/// How many times the limit a writer may stand still.
constexpr int kPatience = 5;

}  // namespace

struct OutputDrain::Mailbox {
  std::mutex mutex;
  asio::io_context* loop = nullptr;  ///< Null once nobody waits.
  OutputDrain* drain = nullptr;      ///< Loop thread only.
};

OutputDrain::OutputDrain(asio::io_context& loop, std::vector<OutputWriter*> writers, Streams streams,
                         std::chrono::milliseconds limit, std::function<void()> done)
    : loop_(loop),
      writers_(std::move(writers)),
      streams_(std::move(streams)),
      limit_(limit),
      done_(std::move(done)),
      timer_(loop),
      mailbox_(std::make_shared<Mailbox>()) {
  mailbox_->loop = &loop_;
  mailbox_->drain = this;
  bytes_seen_ = bytes_done();
  arm(limit_);
  asio::post(loop_, [mailbox = mailbox_] {
    if (mailbox->drain != nullptr) mailbox->drain->stream_ended();
  });
}

OutputDrain::~OutputDrain() {
  const std::lock_guard lock(mailbox_->mutex);
  mailbox_->loop = nullptr;
  mailbox_->drain = nullptr;
}

std::uint64_t OutputDrain::bytes_done() const {
  std::uint64_t sum = 0;
  for (const OutputWriter* writer : writers_) sum += writer->bytes_done();
  return sum;
}

void OutputDrain::arm(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([mailbox = mailbox_](const asio::error_code& error) {
    if (!error && mailbox->drain != nullptr) mailbox->drain->deadline_passed();
  });
}

void OutputDrain::deadline_passed() {
  if (!done_) return;
  const std::uint64_t before = std::exchange(bytes_seen_, bytes_done());
  if (!has_set_fences_) {
    streams_.give_up();
    stream_ended();
  } else if (bytes_seen_ != before) {
    arm(kPatience * limit_);
  } else {
    finish();
  }
}

void OutputDrain::stream_ended() {
  if (has_set_fences_ || !done_ || streams_.are_open()) return;
  begin_fences();
}

void OutputDrain::begin_fences() {
  has_set_fences_ = true;
  arm(kPatience * limit_);
  set_next_fence();
}

void OutputDrain::set_next_fence() {
  if (next_writer_ == writers_.size()) return finish();
  writers_[next_writer_++]->fence([mailbox = mailbox_] {
    const std::lock_guard lock(mailbox->mutex);
    if (mailbox->loop == nullptr) return;
    asio::post(*mailbox->loop, [mailbox] {
      if (mailbox->drain != nullptr) mailbox->drain->set_next_fence();
    });
  });
}

void OutputDrain::finish() {
  timer_.cancel();
  if (!done_) return;
  // `done` may destroy this object.
  const auto done = std::exchange(done_, nullptr);
  done();
}

}  // namespace tensorplay::agent
