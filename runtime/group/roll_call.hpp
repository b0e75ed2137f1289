/// Who has come: a barrier over a store whose error names those who have not.
#pragma once

#include "tensorplay/distributed/deadline.hpp"
#include "tensorplay/distributed/store.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::distributed {

/// Each rank calls `arrive` once with the same `stage`, in a name space used for nothing else.
/// O(1) requests for each rank; only a failure asks for each rank's key.
/// Thread rules: none of its own.
class RollCall {
 public:
  RollCall(std::shared_ptr<Store> store, int rank, int size);

  /// Says that this rank is here and waits for all. At the deadline throws DistStoreError that names the missing:
  /// "<what>: waited 2.0 s for 4 ranks: rank 2 and rank 3 never came".
  void arrive(const std::string& stage, const std::string& what, Deadline deadline);

  /// The ranks that have not arrived at `stage`.
  std::vector<int> missing(const std::string& stage);

 private:
  std::shared_ptr<Store> store_;
  int rank_;
  int size_;
};

/// "rank 2", "rank 2 and rank 3", "rank 2, rank 3 and 14 others"
std::string name_ranks(const std::vector<int>& ranks);

/// What is left of a deadline, as the stores take it: at least a millisecond, at most a month.
Store::Timeout store_timeout(Deadline deadline);

/// "0.5 s", "30 min"
std::string describe(std::chrono::milliseconds duration);

}  // namespace tensorplay::distributed
