#include "runtime/backend/gloo/step.hpp"

#include "runtime/group/roll_call.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <utility>

namespace tensorplay::distributed {
namespace {

/// How long a transfer may take to show whether it has failed too, once another one has.
constexpr std::chrono::milliseconds kAfterthought{1};

/// Has the vigil watch while a step waits.
class Watched {
 public:
  explicit Watched(std::shared_ptr<Vigil> vigil) : vigil_(std::move(vigil)) {
    if (vigil_) vigil_->begin_wait();
  }
  ~Watched() {
    if (vigil_) vigil_->end_wait();
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  std::shared_ptr<Vigil> vigil_;
};

bool is_timeout(const std::string& gloo_text) {
  return gloo_text.find("Timed out") != std::string::npos || gloo_text.find("timeout") != std::string::npos;
}

}  // namespace

Step::Step(Operation& operation, Sigpipe sigpipe)
    : operation_(operation), slot_(operation.first_slot++), context_(operation.mesh.context()) {
  if (sigpipe == Sigpipe::kGuard) guard_.emplace();
  if (const auto why = operation.mesh.reason_unusable(); !why.empty()) {  // Set before the context goes.
    throw DistBackendError(operation.what + ": the group is unusable: " + why);
  }
}

Step::~Step() = default;

void Step::send(int peer, const void* data, std::size_t bytes) {
  post(peer, const_cast<void*>(data), bytes, false);  // Gloo has one buffer type for both directions.
}

void Step::recv(int peer, void* data, std::size_t bytes) {
  post(peer, data, bytes, true);
}

void Step::recv_from_any(void* data, std::size_t bytes) {
  post(Mesh::kAnyPeer, data, bytes, true);
}

void Step::post(int peer, void* data, std::size_t bytes, bool is_receive) {
  if (is_receive) source_ = peer;
  if (bytes == 0) return;
  transfers_.push_back({context_->createUnboundBuffer(data, bytes), peer, is_receive});
  auto& buffer = *transfers_.back().buffer;
  const auto slot = slot_ | slot::of_shape(bytes, operation_.kind);
  try {
    if (peer == Mesh::kAnyPeer) {
      buffer.recv(operation_.mesh.peers(), slot);
    } else if (is_receive) {
      buffer.recv(peer, slot);
    } else {
      buffer.send(peer, slot);
    }
  } catch (const std::exception& error) {
    fail(transfers_.size() - 1, error.what());
  }
}

bool Step::wait_in_gloo(Transfer& transfer, std::chrono::milliseconds limit) {
  if (!transfer.is_receive) return transfer.buffer->waitSend(nullptr, limit);
  int source = -1;
  const bool is_whole = transfer.buffer->waitRecv(&source, limit);
  if (is_whole) source_ = source;
  return is_whole;
}

bool Step::wait_for(Transfer& transfer, std::chrono::milliseconds limit) {
  Mesh& mesh = operation_.mesh;
  {
    const std::lock_guard lock(mesh.mutex_);
    if (!mesh.unusable_.empty()) return false;
    mesh.waits_.emplace(transfer.buffer.get(), transfer.peer);
  }
  const auto end_wait = [&] {
    const std::lock_guard lock(mesh.mutex_);
    mesh.waits_.erase(transfer.buffer.get());
  };
  bool is_whole = false;
  try {
    is_whole = wait_in_gloo(transfer, limit);
  } catch (...) {
    end_wait();
    throw;
  }
  end_wait();
  return is_whole;
}

void Step::wait() {
  if (transfers_.empty()) return;
  const Watched watched(operation_.mesh.vigil());
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    try {
      if (wait_for(transfers_[i], store_timeout(operation_.deadline))) continue;
    } catch (const std::exception& error) {
      fail(i, error.what());
    }
    if (const auto why = operation_.mesh.reason_unusable(); !why.empty()) {
      throw DistBackendError(operation_.what + ": " + why);
    }
    // The vigil woke us: the peer's connection is broken. What arrived before that still counts.
    try {
      if (wait_in_gloo(transfers_[i], kAfterthought)) continue;
    } catch (const std::exception&) {
    }
    fail(i, transfers_[i].peer == Mesh::kAnyPeer ? "nobody is left" : "in the middle of a message");
  }
}

void Step::fail(std::size_t first, const std::string& gloo_text) {
  if (const auto why = operation_.mesh.reason_unusable(); !why.empty()) {
    throw DistBackendError(operation_.what + ": " + why);
  }
  // Those behind the first have perhaps failed too; each is asked once, so that all of them are named.
  std::vector<int> lost;
  std::vector<int> late;
  const bool is_late = is_timeout(gloo_text);
  const auto note = [](std::vector<int>& peers, int peer) {
    if (std::find(peers.begin(), peers.end(), peer) == peers.end()) peers.push_back(peer);
  };
  note(is_late ? late : lost, transfers_[first].peer);
  for (std::size_t i = first + 1; i < transfers_.size(); ++i) {
    try {
      wait_in_gloo(transfers_[i], kAfterthought);
    } catch (const std::exception& error) {
      if (!is_timeout(error.what())) {
        note(lost, transfers_[i].peer);
      } else if (is_late) {
        note(late, transfers_[i].peer);
      }
    }
  }
  std::string text = operation_.what + ": ";
  if (!lost.empty()) {
    text += "connection closed by " + operation_.mesh.names_of(lost) + " (" + gloo_text + ")";
  } else {
    text += "timed out after " + describe(operation_.limit) + ": still waiting for " + operation_.mesh.names_of(late);
    text += operation_.kind == 0 ? ", or it sends or expects another size or tag"
                                 : ", or its call is another or of another size (TP_DISTRIBUTED_DEBUG=DETAIL tells)";
  }
  operation_.mesh.abort(text);
  throw DistBackendError(text);
}

}  // namespace tensorplay::distributed
