#pragma once

#include "runtime/backend/gloo/vigil.hpp"
#include "tensorplay/distributed/backend.hpp"
#include "tensorplay/distributed/deadline.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gloo::transport {
class Context;
class UnboundBuffer;
}  // namespace gloo::transport

namespace tensorplay::distributed {

/// A connection to every other rank of a group, over Gloo's TCP transport.
///
/// Gloo moves the bytes (in a thread of its own for each mesh, beside the vigil's); what is moved when, and what is
/// made of it, is decided in step.hpp and algorithms.hpp. Once a transfer has failed the mesh closes all connections,
/// so that every peer learns of it in milliseconds instead of by its own timeout. Thread rules: every method may be
/// called from any thread.
class Mesh {
 public:
  /// Connects to all peers through the store. DistBackendError, or DistStoreError when ranks do not come, naming them.
  Mesh(const BackendOptions& options, Deadline deadline);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  /// Stands for every peer, in a receive from whoever sends.
  static constexpr int kAnyPeer = -1;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  std::vector<int> peers() const;

  /// "rank 2 on node1", "rank 1 (global rank 3) on node1"
  std::string name_of(int peer) const;
  std::string names_of(const std::vector<int>& peers) const;

  /// "[127.0.0.1]:41234", where that peer listens; empty for this rank.
  const std::string& address_of(int peer) const { return addresses_[static_cast<std::size_t>(peer)]; }

  /// Fails every transfer, now and later, with `why`, and closes the connections at once. The first reason stays.
  void abort(const std::string& why);

  /// Closes the connections in good order: what was sent still arrives.
  void close();

  /// Why no transfer can begin any more; empty while one can.
  std::string reason_unusable() const;

 private:
  friend class Step;
  friend class MonitoredBarrier;

  std::shared_ptr<gloo::transport::Context> context() const;
  std::shared_ptr<Vigil> vigil() const;

  /// Wakes those who are blocked on a peer whose connection is broken.
  void wake_waits_for(const std::vector<int>& lost);
  void wake_all_waits();  // With the lock held.

  int rank_;
  int size_;
  std::vector<int> global_ranks_;
  std::vector<std::string> hosts_;      // Of each rank, for messages.
  std::vector<std::string> addresses_;  // Likewise.

  mutable std::mutex mutex_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::map<gloo::transport::UnboundBuffer*, int> waits_;  // Transfers that a thread is blocked on, and their peers.
  std::string unusable_;

  std::shared_ptr<Vigil> vigil_;  // Null in a group of one and once closed. Last: its thread uses everything above.
};

}  // namespace tensorplay::distributed
