#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace gloo::transport {
class Context;
class UnboundBuffer;
}  // namespace gloo::transport

namespace tensorplay::distributed {

/// Watches for peers that died in the middle of a message.
///
/// When a connection breaks, Gloo fails the transfers that wait for it, but not the one whose bytes were just arriving:
/// that one would wait until its deadline. So for each peer a receive is posted that never completes; Gloo fails it
/// with the others, and while an operation waits a thread looks at these receives ten times a second. It sleeps when no
/// operation has waited for a while.
/// Thread rules: every method may be called from any thread.
class Vigil {
 public:
  /// `on_lost` is called in the vigil's thread, again and again, with the peers whose connections are broken while
  /// someone waits. A peer that has closed after its last operation is among them.
  Vigil(std::shared_ptr<gloo::transport::Context> context, int rank, int size,
        std::function<void(const std::vector<int>& lost)> on_lost);
  ~Vigil();
  Vigil(const Vigil&) = delete;
  Vigil& operator=(const Vigil&) = delete;

  /// Between these two an operation waits for peers.
  void begin_wait();
  void end_wait();

  /// The peers whose connections are broken now.
  std::vector<int> lost();

 private:
  struct Canary {
    int peer;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
    char memory = 0;
  };

  void watch();

  std::function<void(const std::vector<int>&)> on_lost_;
  std::mutex canaries_mutex_;
  std::vector<std::unique_ptr<Canary>> canaries_;

  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool dozes_ = false;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace tensorplay::distributed
