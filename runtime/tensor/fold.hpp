/// The reduction kernel: n arrays into one, element by element, always in the order in which they are given.
///
/// Because the order is fixed (collectives give the ranks' contributions as 0, 1, ..., n - 1), a result is the same bit
/// for bit in every run, on every rank and for every way the bytes travelled. float16 and bfloat16 accumulate in float
/// and are rounded once, at the end. Integers wrap around; AVG of integers truncates towards zero.
/// Thread rules: pure functions over the caller's memory.
#pragma once

#include "tensorplay/distributed/dtype.hpp"
#include "tensorplay/distributed/reduce_op.hpp"

#include <cstddef>
#include <span>

namespace tensorplay {

/// Throws InvalidArgument when the operation makes no sense for elements of that type.
void check_can_fold(const distributed::ReduceOp& op, DType dtype);

/// out[i] = sources[0][i] op sources[1][i] op ... for `count` elements; `out` may be one of the sources. At least one
/// source. AVG divides by the number of sources.
void fold(const distributed::ReduceOp& op, DType dtype, std::span<const void* const> sources, void* out,
          std::size_t count);

}  // namespace tensorplay
