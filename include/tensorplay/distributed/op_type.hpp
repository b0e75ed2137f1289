#pragma once

#include "tensorplay/distributed/export.hpp"

#include <cstdint>
#include <set>
#include <string_view>

namespace tensorplay::distributed {

/// What a group can be asked to do: for the capability table, records and messages. Source of the order: c10d's OpType,
/// with the calls that it does not tell apart at the end.
enum class OpType : std::uint8_t {
  BROADCAST,
  ALLREDUCE,
  ALLREDUCE_COALESCED,
  REDUCE,
  ALLGATHER,
  ALLGATHER_SINGLE,
  GATHER,
  SCATTER,
  REDUCE_SCATTER,
  REDUCE_SCATTER_SINGLE,
  ALLTOALL,
  ALLTOALL_SINGLE,
  SEND,
  RECV,
  RECVANYSOURCE,
  BARRIER,
  MONITORED_BARRIER,
};

/// The name of the call: "all_reduce", "recv from any source".
TP_API std::string_view to_string(OpType type) noexcept;

/// All of them, in the order above.
TP_API const std::set<OpType>& all_op_types();

}  // namespace tensorplay::distributed
