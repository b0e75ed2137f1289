/// From one rank to another: send, recv and their asynchronous forms.
///
/// A message is matched by sender, receiver and tag; those of one sender, receiver and tag arrive in order. Any dtype
/// and layout; the sizes in bytes of both sides must agree. A default-constructed group means the default group; a rank
/// that is no member gets one warning and no effect. Errors and timeouts are those of collectives.hpp.
/// Thread rules: any thread; these calls run beside the group's collectives, in no order with them.
/// Source of the semantics: c10d.
#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/init.hpp"
#include "tensorplay/distributed/tensor.hpp"
#include "tensorplay/distributed/work.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tensorplay::distributed {

using WorkPtr = std::shared_ptr<Work>;

struct SendOptions {
  std::optional<int> dst = {};  ///< Global rank; this or group_dst.
  Group group = {};
  int tag = 0;
  std::optional<int> group_dst = {};
  std::chrono::milliseconds timeout{0};
};

struct RecvOptions {
  std::optional<int> src = {};  ///< Global rank; neither this nor group_src: whoever sends.
  Group group = {};
  int tag = 0;
  std::optional<int> group_src = {};
  std::chrono::milliseconds timeout{0};
};

/// Blocks until the receiver has begun to take the elements.
TP_API void send(const Tensor& tensor, const SendOptions& options);

/// Blocks until the elements are here; returns the sender's global rank, -1 where this rank is no member.
TP_API int recv(const Tensor& tensor, const RecvOptions& options = {});

/// The same without blocking. A Work that is dropped completes all the same. The Work of a receive has the sender, as a
/// rank of the group, in source_rank().
TP_API WorkPtr isend(const Tensor& tensor, const SendOptions& options);
TP_API WorkPtr irecv(const Tensor& tensor, const RecvOptions& options = {});

struct PeerOptions {
  std::optional<int> peer = {};  ///< Global rank; this or group_peer.
  Group group = {};
  int tag = 0;
  std::optional<int> group_peer = {};
};

/// One transfer of a batch: P2POp(isend, tensor, {.peer = 1}).
class TP_API P2POp {
 public:
  using Send = WorkPtr (*)(const Tensor&, const SendOptions&);
  using Recv = WorkPtr (*)(const Tensor&, const RecvOptions&);

  /// InvalidArgument when the function is neither isend nor irecv, or the peer is missing.
  P2POp(Send op, Tensor tensor, PeerOptions options);
  P2POp(Recv op, Tensor tensor, PeerOptions options);

  bool is_send() const noexcept { return is_send_; }
  const Tensor& tensor() const noexcept { return tensor_; }
  const PeerOptions& options() const noexcept { return options_; }

 private:
  bool is_send_;
  Tensor tensor_;
  PeerOptions options_;
};

/// Starts all of them, in any order that suits; one Work each. All in one group. InvalidArgument, before anything is
/// sent, when one of them could not be.
TP_API std::vector<WorkPtr> batch_isend_irecv(const std::vector<P2POp>& operations);

}  // namespace tensorplay::distributed
