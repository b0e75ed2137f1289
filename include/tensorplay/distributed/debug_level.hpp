#pragma once

#include "tensorplay/distributed/export.hpp"

#include <cstdint>

namespace tensorplay::distributed {

/// How much is checked and told. OFF costs nothing. INFO logs groups as they are made. DETAIL also compares every
/// collective between its ranks before it runs, at the price of a small one beside each.
enum class DebugLevel : std::uint8_t { OFF, INFO, DETAIL };

/// The level of groups that are made from now on. At the start what TP_DISTRIBUTED_DEBUG or TORCH_DISTRIBUTED_DEBUG
/// says (in any case; empty counts as unset: OFF); InvalidArgument, naming the variable, when it says something else.
TP_API DebugLevel get_debug_level();
TP_API void set_debug_level(DebugLevel level);
TP_API void set_debug_level_from_env();

}  // namespace tensorplay::distributed
