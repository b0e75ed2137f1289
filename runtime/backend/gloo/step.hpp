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
  std::uint64_t kind = 0;  ///< Differs from operation to operation.
};

/// How Gloo's 64-bit slots, by which it matches messages, are divided: a bit for point-to-point, what is left of size
/// and kind, then tag, or sequence number and step. Messages of calls that differ thus never meet: Gloo would end the
/// process when one is longer than its receiver expects, and fill a longer receiver in part.
namespace slot {

inline constexpr int kStepBits = 16;
inline constexpr int kShapeShift = 48;
inline constexpr std::uint64_t kShapeMask = 0x7fff;
inline constexpr std::uint64_t kPointToPoint = std::uint64_t{1} << 63;

constexpr std::uint64_t of_sequence(std::uint64_t sequence) noexcept {
  return (sequence & 0xffffffff) << kStepBits;
}

/// Sizes that differ by less than 32 KiB, and kinds that differ, never give the same.
constexpr std::uint64_t of_shape(std::size_t bytes, std::uint64_t kind) noexcept {
  const std::uint64_t size = bytes;
  return ((size ^ (size >> 15) ^ (size >> 30) ^ (size >> 45) ^ (kind << 10)) & kShapeMask) << kShapeShift;
}

}  // namespace slot

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
