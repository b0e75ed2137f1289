/// The collectives that move elements between ranks without reducing them.
#include "runtime/group/call.hpp"
#include "runtime/group/composed_work.hpp"
#include "tensorplay/distributed/collectives.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <numeric>
#include <string>

namespace tensorplay::distributed {
namespace {

/// The tensors of one side of a rooted call, which the root has to give and nobody else may.
void check_on_root_only(bool is_root, bool is_given, const char* call, const char* what) {
  if (is_root == is_given) return;
  throw InvalidArgument(std::string(call) + ": " + what +
                        (is_root ? " has to be given on the root" : " may be given on the root only"));
}

/// Rows for each rank, as given or equally many.
std::vector<std::int64_t> splits_of(const Tensor& tensor, const std::vector<std::int64_t>& given, int size,
                                    const char* side) {
  const std::string call = std::string("all_to_all_single: the ") + side;
  if (tensor.dim() == 0) throw InvalidArgument(call + " has no dimension to split");
  const std::int64_t rows = tensor.size(0);
  if (given.empty()) {
    if (rows % size != 0) {
      throw InvalidArgument(call + "'s " + std::to_string(rows) + " rows do not divide equally among " +
                            std::to_string(size) + " ranks; give the split sizes");
    }
    return std::vector<std::int64_t>(static_cast<std::size_t>(size), rows / size);
  }
  if (static_cast<int>(given.size()) != size) {
    throw InvalidArgument(call + " has " + std::to_string(given.size()) + " split sizes for a group of " +
                          std::to_string(size) + " ranks");
  }
  std::int64_t sum = 0;
  for (const auto split : given) {
    if (split < 0) throw InvalidArgument(call + " has a negative split size");
    sum += split;
  }
  if (sum != rows) {
    throw InvalidArgument(call + "'s split sizes add up to " + std::to_string(sum) + ", not to its " +
                          std::to_string(rows) + " rows");
  }
  return given;
}

}  // namespace

WorkPtr all_gather(const std::vector<Tensor>& outputs, const Tensor& input, const AllGatherOptions& options) {
  const auto group = enter(options.group, "all_gather");
  if (!group) return nullptr;
  check_defined(input, "all_gather");
  check_list(outputs, input, *group, true, "all_gather");
  auto& backend = group->backend_for(input.device().type);
  return leave(*group, backend.all_gather(outputs, input, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr all_gather_coalesced(const std::vector<std::vector<Tensor>>& output_lists, const std::vector<Tensor>& inputs,
                             const AllGatherOptions& options) {
  const auto group = enter(options.group, "all_gather_coalesced");
  if (!group) return nullptr;
  if (inputs.empty() || output_lists.size() != inputs.size()) {
    throw InvalidArgument("all_gather_coalesced: " + std::to_string(output_lists.size()) + " lists of outputs for " +
                          std::to_string(inputs.size()) + " inputs");
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_defined(inputs[i], "all_gather_coalesced");
    check_list(output_lists[i], inputs[i], *group, true, "all_gather_coalesced");
  }
  const auto call = how(*group, options.timeout, options.async_op);
  std::vector<WorkPtr> works;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    works.push_back(group->backend_for(inputs[i].device().type).all_gather(output_lists[i], inputs[i], call));
  }
  return leave(*group, compose_works("all_gather_coalesced", std::move(works)), options.async_op);
}

WorkPtr all_gather_single(const Tensor& output, const Tensor& input, const AllGatherOptions& options) {
  const auto group = enter(options.group, "all_gather_single");
  if (!group) return nullptr;
  check_single(output, input, *group, "all_gather_single");
  auto& backend = group->backend_for(input.device().type);
  return leave(*group, backend.all_gather_single(output, input, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr all_gather_into_tensor(const Tensor& output, const Tensor& input, const AllGatherOptions& options) {
  return all_gather_single(output, input, options);
}

WorkPtr gather(const Tensor& tensor, const std::vector<Tensor>& gather_list, const GatherOptions& options) {
  const auto group = enter(options.group, "gather");
  if (!group) return nullptr;
  check_defined(tensor, "gather");
  const int root = group_rank(*group, options.dst, options.group_dst, "gather");
  check_on_root_only(group->rank() == root, !gather_list.empty(), "gather", "gather_list");
  if (!gather_list.empty()) check_list(gather_list, tensor, *group, true, "gather");
  auto& backend = group->backend_for(tensor.device().type);
  return leave(*group, backend.gather(gather_list, tensor, root, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr gather_single(const Tensor& tensor, const Tensor& gather_tensor, const GatherOptions& options) {
  const auto group = enter(options.group, "gather_single");
  if (!group) return nullptr;
  check_defined(tensor, "gather_single");
  const int root = group_rank(*group, options.dst, options.group_dst, "gather_single");
  check_on_root_only(group->rank() == root, gather_tensor.defined(), "gather_single", "gather_tensor");
  std::vector<Tensor> parts;
  if (gather_tensor.defined()) {
    check_single(gather_tensor, tensor, *group, "gather_single");
    const Tensor flat = gather_tensor.flatten();
    for (int rank = 0; rank < group->size(); ++rank) {
      parts.push_back(flat.slice(0, rank * tensor.numel(), (rank + 1) * tensor.numel()));
    }
  }
  auto& backend = group->backend_for(tensor.device().type);
  return leave(*group, backend.gather(parts, tensor, root, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr gather_into_tensor(const Tensor& tensor, const Tensor& gather_tensor, const GatherOptions& options) {
  return gather_single(tensor, gather_tensor, options);
}

WorkPtr scatter(const Tensor& tensor, const std::vector<Tensor>& scatter_list, const ScatterOptions& options) {
  const auto group = enter(options.group, "scatter");
  if (!group) return nullptr;
  check_defined(tensor, "scatter");
  const int root = group_rank(*group, options.src, options.group_src, "scatter");
  check_on_root_only(group->rank() == root, !scatter_list.empty(), "scatter", "scatter_list");
  if (!scatter_list.empty()) check_list(scatter_list, tensor, *group, true, "scatter");
  auto& backend = group->backend_for(tensor.device().type);
  return leave(*group, backend.scatter(tensor, scatter_list, root, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr all_to_all(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                   const AllToAllOptions& options) {
  const auto group = enter(options.group, "all_to_all");
  if (!group) return nullptr;
  if (outputs.empty()) throw InvalidArgument("all_to_all: the list of outputs is empty");
  const auto own = static_cast<std::size_t>(group->rank());
  if (own >= outputs.size() || own >= inputs.size()) {
    throw InvalidArgument("all_to_all: " + std::to_string(outputs.size()) + " outputs and " +
                          std::to_string(inputs.size()) + " inputs for a group of " + std::to_string(group->size()) +
                          " ranks");
  }
  check_defined(inputs[own], "all_to_all");
  check_list(outputs, inputs[own], *group, true, "all_to_all");
  check_list(inputs, outputs[own], *group, true, "all_to_all");
  auto& backend = group->backend_for(inputs[own].device().type);
  return leave(*group, backend.all_to_all(outputs, inputs, how(*group, options.timeout, options.async_op)),
               options.async_op);
}

WorkPtr all_to_all_single(const Tensor& output, const Tensor& input, const AllToAllSingleOptions& options) {
  const char* const call = "all_to_all_single";
  const auto group = enter(options.group, call);
  if (!group) return nullptr;
  check_defined(input, call);
  check_same_kind(input, output, call);
  const auto output_splits = splits_of(output, options.output_split_sizes, group->size(), "output");
  const auto input_splits = splits_of(input, options.input_split_sizes, group->size(), "input");
  const auto row_elements = [](const Tensor& tensor) {
    return tensor.size(0) == 0 ? 0 : tensor.numel() / tensor.size(0);
  };
  if (input.numel() > 0 && output.numel() > 0 && row_elements(input) != row_elements(output)) {
    throw InvalidArgument("all_to_all_single: a row of the input has " + std::to_string(row_elements(input)) +
                          " elements, a row of the output " + std::to_string(row_elements(output)));
  }
  const auto own = static_cast<std::size_t>(group->rank());
  if (output_splits[own] != input_splits[own]) {
    throw InvalidArgument("all_to_all_single: this rank sends itself " + std::to_string(input_splits[own]) +
                          " rows and expects " + std::to_string(output_splits[own]));
  }
  auto& backend = group->backend_for(input.device().type);
  return leave(*group,
               backend.all_to_all_single(output, input, output_splits, input_splits,
                                         how(*group, options.timeout, options.async_op)),
               options.async_op);
}

}  // namespace tensorplay::distributed
