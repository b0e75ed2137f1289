/// What one rank is about to do, in a form that ranks can compare: the core of the DETAIL checks. No I/O.
#pragma once

#include "tensorplay/distributed/op_type.hpp"
#include "tensorplay/distributed/reduce_op.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::distributed {

/// A call as its rank sees it.
struct Fingerprint {
  /// What has to be the same on all ranks, for people too: "all_reduce of 10 float32 with SUM".
  std::string text;

  /// Elements that go to and are expected from each rank, where those differ from rank to rank; kUntold where this rank
  /// does not know. Empty for calls that are told by their text.
  std::vector<std::int64_t> sends;
  std::vector<std::int64_t> expects;

  static constexpr std::int64_t kUntold = -1;

  bool has_pairs() const noexcept { return !sends.empty(); }
};

/// Of a call in which every rank passes as many elements.
Fingerprint fingerprint_of(OpType type, const Tensor& tensor, std::optional<int> root = {},
                           std::optional<ReduceOp> op = {});

/// Of a call in which each pair of ranks has a size of its own. `like` has the dtype.
Fingerprint pairwise_fingerprint_of(OpType type, const Tensor& like, std::vector<std::int64_t> sends,
                                    std::vector<std::int64_t> expects, std::optional<int> root = {},
                                    std::optional<ReduceOp> op = {});

/// Bytes of a text on the wire; longer ones are cut.
inline constexpr std::size_t kFingerprintBytes = 192;

/// Who calls what, when not all texts agree: "rank 0 calls A; rank 1 and rank 2 call B". Empty when they do.
std::string describe_difference(const std::vector<std::string>& texts);

/// The first pair that disagrees: "rank 0 sends 5 elements to rank 1, which expects 4". sends[i][j] is what i sends to
/// j, expects[j][i] what j expects of it. Empty when all agree.
std::string describe_pair_difference(const std::vector<std::vector<std::int64_t>>& sends,
                                     const std::vector<std::vector<std::int64_t>>& expects);

}  // namespace tensorplay::distributed
