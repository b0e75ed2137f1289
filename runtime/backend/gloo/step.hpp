#pragma once

#include "runtime/backend/gloo/mesh.hpp"
#include "runtime/backend/gloo/sigpipe_guard.hpp"
#include "tensorplay/distributed/deadline.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::distributed {

/// One operation being carried out: what its steps share.
struct Operation {
  Mesh& mesh;
  std::string what;          ///< "all_reduce #12", the beginning of its messages.
  std::uint64_t first_slot;  ///< Each step takes the next; the same numbers on all ranks, and used by nobody else.
  std::chrono::milliseconds limit;
  Deadline deadline;
};

/// Sends and receives that go on together, and the wait for all of them.
///
/// Post every transfer, then wait() once. The first failure ends the step: the mesh is aborted, with a text that names
/// every peer that was lost or late, and that text is thrown as DistBackendError.
/// Thread rules: one thread, or one that posts and then another that waits if each keeps SIGPIPE away by itself.
/// Memory passed must live until wait() has returned or the Step is gone.
class Step {
 public:
  enum class Sigpipe : std::uint8_t { kGuard, kCallerGuards };

  explicit Step(Operation& operation, Sigpipe sigpipe = Sigpipe::kGuard);
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  void send(int peer, const void* data, std::size_t bytes);  ///< Nothing happens for no bytes.
  void recv(int peer, void* data, std::size_t bytes);
  void recv_from_any(void* data, std::size_t bytes);
  void wait();

  /// Who sent what the last receive got.
  int source() const noexcept { return source_; }

 private:
  struct Transfer {
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
    int peer;  ///< Or Mesh::kAnyPeer.
    bool is_receive;
  };

  void post(int peer, void* data, std::size_t bytes, bool is_receive);
  bool wait_for(Transfer& transfer, std::chrono::milliseconds limit);
  bool wait_in_gloo(Transfer& transfer, std::chrono::milliseconds limit);
  [[noreturn]] void fail(std::size_t first, const std::string& gloo_text);

  std::optional<SigpipeGuard> guard_;
  Operation& operation_;
  std::uint64_t slot_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<Transfer> transfers_;
  int source_ = -1;
};

}  // namespace tensorplay::distributed
