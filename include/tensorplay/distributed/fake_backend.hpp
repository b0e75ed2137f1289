#pragma once

#include "tensorplay/distributed/backend.hpp"
#include "tensorplay/distributed/export.hpp"

#include <set>

namespace tensorplay::distributed {

/// What the fake backend is to do otherwise than succeed; given as `pg_options`.
class TP_API FakeOptions final : public PGOptions {
 public:
  ~FakeOptions() override;
  std::set<OpType> failing = {};  ///< These throw DistBackendError.
};

}  // namespace tensorplay::distributed
