#include "tensorplay/distributed/op_type.hpp"

#include <array>
#include <cstddef>

namespace tensorplay::distributed {
namespace {

constexpr std::array<std::string_view, 17> kNames = {"broadcast",
                                                     "all_reduce",
                                                     "all_reduce_coalesced",
                                                     "reduce",
                                                     "all_gather",
                                                     "all_gather_single",
                                                     "gather",
                                                     "scatter",
                                                     "reduce_scatter",
                                                     "reduce_scatter_single",
                                                     "all_to_all",
                                                     "all_to_all_single",
                                                     "send",
                                                     "recv",
                                                     "recv from any source",
                                                     "barrier",
                                                     "monitored_barrier"};

}  // namespace

std::string_view to_string(OpType type) noexcept {
  return kNames[static_cast<std::size_t>(type)];
}

const std::set<OpType>& all_op_types() {
  static const std::set<OpType> all = [] {
    std::set<OpType> types;
    for (std::size_t i = 0; i < kNames.size(); ++i) types.insert(static_cast<OpType>(i));
    return types;
  }();
  return all;
}

}  // namespace tensorplay::distributed
