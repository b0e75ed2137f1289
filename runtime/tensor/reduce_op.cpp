#include "tensorplay/distributed/reduce_op.hpp"

#include <array>

namespace tensorplay::distributed {

std::string_view to_string(const ReduceOp& op) noexcept {
  constexpr std::array<std::string_view, 9> kNames = {"SUM",  "AVG", "PRODUCT", "MIN",       "MAX",
                                                      "BAND", "BOR", "BXOR",    "PREMUL_SUM"};
  return kNames[op.kind()];
}

}  // namespace tensorplay::distributed
