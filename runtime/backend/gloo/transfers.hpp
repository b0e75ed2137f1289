#pragma once

#include "runtime/backend/gloo/step.hpp"
#include "runtime/group/packed.hpp"
#include "tensorplay/distributed/work.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tensorplay::distributed {

/// Sends and receives on their way, outside the order of the collectives.
///
/// Each is posted when it is asked for, so that Gloo moves the bytes whatever anybody waits for. Its end is awaited by
/// whoever waits for its Work, else by one of a few threads, oldest first: a Work that is dropped completes, and
/// futures complete without a wait. With more in flight than there are threads, is_completed() of the youngest may lag.
/// Thread rules: every method may be called from any thread.
class Transfers {
 public:
  explicit Transfers(Mesh& mesh) : mesh_(mesh) {}
  ~Transfers();  ///< Call stop() before.
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  enum class Kind : std::uint8_t { kSend, kReceive };

  /// `peer` may be Mesh::kAnyPeer for a receive. A synchronous one throws what it failed with.
  std::shared_ptr<Work> start(Kind kind, const Tensor& tensor, int peer, int tag, std::chrono::milliseconds limit,
                              bool async_op);

  /// Waits until nothing is on its way, or the deadline; whether nothing is.
  bool drain(Deadline deadline);

  /// Joins the threads; what is on its way has to be ended by closing the mesh first.
  void stop();

 private:
  struct Transfer;
  class TransferWork;

  void run();
  void end_one();

  Mesh& mesh_;
  std::atomic<std::uint64_t> started_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Transfer>> queue_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  std::size_t on_their_way_ = 0;
  bool is_ending_ = false;
};

}  // namespace tensorplay::distributed
