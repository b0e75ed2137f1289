#include "runtime/backend/gloo/arrival.hpp"

#include <algorithm>
#include <atomic>
#include <exception>

namespace tensorplay::distributed {
namespace {

constexpr std::chrono::milliseconds kGlooLimit = std::chrono::hours(24);  // The alarm comes first.
const std::string kLate = "Timed out waiting for the peer";

}  // namespace

Alarm::Alarm(Deadline deadline)
    : deadline_(deadline), thread_([this] {
        std::unique_lock lock(mutex_);
        if (changed_.wait_until(lock, deadline_.when(), [&] { return is_over_; })) return;
        has_rung_ = true;
        if (buffer_ != nullptr) ring(*buffer_);
      }) {}

Alarm::~Alarm() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  changed_.notify_all();
}

void Alarm::ring(gloo::transport::UnboundBuffer& buffer) {
  buffer.abortWaitRecv();
  buffer.abortWaitSend();
}

void Alarm::set(gloo::transport::UnboundBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  buffer_ = buffer;
  if (buffer != nullptr && has_rung_) ring(*buffer);
}

Arrival::Arrival(gloo::transport::Context& context, std::size_t bytes)
    : memory_(bytes, '\0'), buffer_(context.createUnboundBuffer(memory_.data(), bytes)) {}

void Arrival::receive(int peer, std::uint64_t slot) {
  try {
    buffer_->recv(peer, slot);
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
}

void Arrival::send(int peer, std::uint64_t slot, const std::string& text) {
  std::copy_n(text.data(), std::min(text.size(), memory_.size() - (memory_.size() > 1 ? 1 : 0)), memory_.data());
  try {
    buffer_->send(peer, slot);
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
}

bool Arrival::is_here() const {
  // Written by Gloo's thread; every message begins with something else than zero.
  return std::atomic_ref<char>(const_cast<char&>(memory_[0])).load(std::memory_order_acquire) != '\0';
}

std::string Arrival::wait(Alarm& alarm) {
  if (!failure_.empty()) return failure_;
  alarm.set(buffer_.get());
  std::string error;
  try {
    if (!buffer_->waitRecv(nullptr, kGlooLimit) && !is_here()) error = kLate;
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  alarm.set(nullptr);
  return error;
}

std::string Arrival::wait_sent(Alarm& alarm) {
  if (!failure_.empty()) return failure_;
  alarm.set(buffer_.get());
  std::string error;
  try {
    if (!buffer_->waitSend(nullptr, kGlooLimit)) error = kLate;
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  alarm.set(nullptr);
  return error;
}

std::string Arrival::look() {
  if (!failure_.empty()) return failure_;
  buffer_->abortWaitRecv();  // A wait that is aborted before it begins returns at once.
  try {
    if (!buffer_->waitRecv(nullptr, kGlooLimit) && !is_here()) return kLate;
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
  return {};
}

}  // namespace tensorplay::distributed
