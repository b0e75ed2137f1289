#include "runtime/backend/gloo/vigil.hpp"

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <cstdint>
#include <exception>
#include <utility>

namespace tensorplay::distributed {
namespace {

constexpr std::uint64_t kCanarySlot = ~std::uint64_t{0};  // No operation and no tag comes to this number.
constexpr std::chrono::milliseconds kLook{100};
constexpr int kLooksBeforeDozing = 10;

}  // namespace

Vigil::Vigil(std::shared_ptr<gloo::transport::Context> context, int rank, int size,
             std::function<void(const std::vector<int>&)> on_lost)
    : on_lost_(std::move(on_lost)) {
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    auto canary = std::make_unique<Canary>();
    canary->peer = peer;
    canary->buffer = context->createUnboundBuffer(&canary->memory, 1);
    canary->buffer->recv(peer, kCanarySlot);
    canaries_.push_back(std::move(canary));
  }
  thread_ = std::thread([this] { watch(); });
}

Vigil::~Vigil() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Vigil::begin_wait() {
  const std::lock_guard lock(mutex_);
  ++waiting_;
  if (dozes_) changed_.notify_all();
}

void Vigil::end_wait() {
  const std::lock_guard lock(mutex_);
  --waiting_;
}

std::vector<int> Vigil::lost() {
  const std::lock_guard lock(canaries_mutex_);
  std::vector<int> peers;
  for (const auto& canary : canaries_) {
    // A wait that is aborted before it begins returns at once: it only throws what has been signalled.
    canary->buffer->abortWaitRecv();
    try {
      canary->buffer->waitRecv(nullptr, kLook);
    } catch (const std::exception&) {
      peers.push_back(canary->peer);
    }
  }
  return peers;
}

void Vigil::watch() {
  int looks_without_a_wait = 0;
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    if (looks_without_a_wait >= kLooksBeforeDozing) {
      dozes_ = true;
      changed_.wait(lock, [&] { return is_over_ || waiting_ > 0; });
      dozes_ = false;
      looks_without_a_wait = 0;
    }
    if (changed_.wait_for(lock, kLook, [&] { return is_over_; })) return;
    if (waiting_ == 0) {
      ++looks_without_a_wait;
      continue;
    }
    looks_without_a_wait = 0;
    lock.unlock();
    const auto peers = lost();
    if (!peers.empty()) on_lost_(peers);
    lock.lock();
  }
}

}  // namespace tensorplay::distributed
