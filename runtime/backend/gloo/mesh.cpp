#include "runtime/backend/gloo/mesh.hpp"

#include "runtime/backend/gloo/connect.hpp"
#include "runtime/backend/gloo/sigpipe_guard.hpp"
#include "runtime/base/host.hpp"

#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <utility>

namespace tensorplay::distributed {

Mesh::Mesh(const BackendOptions& options, Deadline deadline)
    : rank_(options.rank), size_(options.size), global_ranks_(options.global_ranks) {
  if (size_ == 1) {
    hosts_ = {base::short_host_name()};
    addresses_ = {""};
    return;
  }
  const SigpipeGuard guard;  // Gloo's thread is started in here.
  ConnectedMesh connected = connect_mesh(options, deadline);
  context_ = std::move(connected.context);
  hosts_ = std::move(connected.hosts);
  addresses_ = std::move(connected.addresses);
  vigil_ =
      std::make_shared<Vigil>(context_, rank_, size_, [this](const std::vector<int>& lost) { wake_waits_for(lost); });
}

Mesh::~Mesh() {
  close();
}

std::vector<int> Mesh::peers() const {
  std::vector<int> all;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) all.push_back(peer);
  }
  return all;
}

std::string Mesh::name_of(int peer) const {
  if (peer == kAnyPeer) return "any rank";
  const auto p = static_cast<std::size_t>(peer);
  std::string name = "rank " + std::to_string(peer);
  if (p < global_ranks_.size() && global_ranks_[p] != peer)
    name += " (global rank " + std::to_string(global_ranks_[p]) + ")";
  return name + " on " + hosts_[p];
}

std::string Mesh::names_of(const std::vector<int>& peers) const {
  std::string text;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (i > 0) text += i + 1 == peers.size() ? " and " : ", ";
    text += name_of(peers[i]);
  }
  return text;
}

std::shared_ptr<gloo::transport::Context> Mesh::context() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

std::shared_ptr<Vigil> Mesh::vigil() const {
  const std::lock_guard lock(mutex_);
  return vigil_;
}

std::string Mesh::reason_unusable() const {
  const std::lock_guard lock(mutex_);
  return unusable_;
}

void Mesh::wake_all_waits() {
  for (const auto& [buffer, peer] : waits_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

void Mesh::wake_waits_for(const std::vector<int>& lost) {
  const std::lock_guard lock(mutex_);
  for (const auto& [buffer, peer] : waits_) {
    const bool is_lost = peer == kAnyPeer ? static_cast<int>(lost.size()) == size_ - 1
                                          : std::find(lost.begin(), lost.end(), peer) != lost.end();
    if (!is_lost) continue;
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

void Mesh::abort(const std::string& why) {
  std::shared_ptr<gloo::transport::Context> context;
  {
    const std::lock_guard lock(mutex_);
    if (!unusable_.empty()) return;
    unusable_ = why;
    context = context_;
    wake_all_waits();
  }
  if (!context) return;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) context->getPair(peer)->close();
  }
}

void Mesh::close() {
  // Both end with this function, or with the last transfer that still holds them.
  std::shared_ptr<gloo::transport::Context> context;
  std::shared_ptr<Vigil> vigil;
  {
    const std::lock_guard lock(mutex_);
    if (unusable_.empty()) unusable_ = "the group was destroyed";
    wake_all_waits();
    context.swap(context_);
    vigil.swap(vigil_);
  }
}

}  // namespace tensorplay::distributed
