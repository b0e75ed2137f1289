#include "runtime/parallel/model_sync.hpp"

#include "tensorplay/distributed/collectives.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

namespace tensorplay::nn::parallel {
namespace {

namespace dist = distributed;

std::uint64_t hash_text(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3ULL;
  return hash;
}

/// One line for each trainable parameter: what has to agree.
std::vector<std::string> describe(const Model& model) {
  std::vector<std::string> lines;
  for (const Parameter& parameter : model.parameters) {
    if (!parameter.requires_grad) continue;
    lines.push_back("\"" + parameter.name + "\" " + std::string(to_string(parameter.value.dtype())) + " " +
                    to_string(parameter.value.shape()));
  }
  return lines;
}

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string broadcast_text(std::string text, int source, const dist::Group& group) {
  Tensor size = tensor<std::int64_t>({static_cast<std::int64_t>(text.size())});
  dist::broadcast(size, {.group = group, .group_src = source});
  text.resize(static_cast<std::size_t>(size.item()));
  Tensor bytes =
      Tensor::from_pointer(reinterpret_cast<std::uint8_t*>(text.data()), {static_cast<std::int64_t>(text.size())});
  dist::broadcast(bytes, {.group = group, .group_src = source});
  return text;
}

/// What a rank says whose model is not rank 0's.
std::string difference(int rank, const std::vector<std::string>& mine, const std::vector<std::string>& first) {
  const std::string head = "DDP expects same model across all ranks, but ";
  const std::size_t both = std::min(mine.size(), first.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (mine[i] == first[i]) continue;
    return head + "params[" + std::to_string(i) + "] of rank " + std::to_string(rank) + " is " + mine[i] +
           ", of rank 0 " + first[i];
  }
  const auto& longer = mine.size() > first.size() ? mine : first;
  return head + "Rank 0 has " + std::to_string(first.size()) + " params, while rank " + std::to_string(rank) +
         " has inconsistent " + std::to_string(mine.size()) + " params; only rank " +
         std::to_string(mine.size() > first.size() ? rank : 0) + " has " + longer[both];
}

}  // namespace

void check_same_model(const Model& model, const dist::Group& group) {
  const auto mine = describe(model);
  const std::string text = join_lines(mine);
  const int size = group->size();
  Tensor own = tensor<std::int64_t>({static_cast<std::int64_t>(hash_text(text))});
  Tensor all = empty({size}, DType::kInt64);
  dist::all_gather_single(all, own, {.group = group});
  const auto hashes = all.span<std::int64_t>();
  const auto other = std::find_if(hashes.begin(), hashes.end(), [&](auto hash) { return hash != hashes.front(); });
  if (other == hashes.end()) return;
  const int culprit = static_cast<int>(other - hashes.begin());
  const auto first = split_lines(broadcast_text(text, 0, group));
  std::string verdict;
  if (group->rank() == culprit) verdict = difference(group->global_rank_of(culprit), mine, first);
  throw dist::DistError(broadcast_text(std::move(verdict), culprit, group));
}

void broadcast_coalesced(const std::vector<Tensor>& tensors, int source, const dist::Group& group,
                         std::size_t chunk_bytes) {
  std::map<DType, std::vector<Tensor>> by_dtype;
  for (const Tensor& one : tensors) by_dtype[one.dtype()].push_back(one);
  for (const auto& [dtype, list] : by_dtype) {
    for (std::size_t begin = 0; begin < list.size();) {
      std::size_t end = begin;
      std::int64_t count = 0;
      do {
        count += list[end++].numel();
      } while (end < list.size() &&
               static_cast<std::size_t>(count + list[end].numel()) * element_size(dtype) <= chunk_bytes);
      if (end == begin + 1) {  // Nothing to put together.
        dist::broadcast(list[begin], {.group = group, .group_src = source});
      } else {
        Tensor chunk = empty({count}, dtype);
        const auto each = [&](const auto& act) {
          std::int64_t offset = 0;
          for (std::size_t i = begin; i < end; offset += list[i++].numel()) {
            act(list[i], chunk.slice(0, offset, offset + list[i].numel()).reshape(list[i].shape()));
          }
        };
        if (group->rank() == source) each([](const Tensor& one, Tensor part) { part.copy_(one); });
        dist::broadcast(chunk, {.group = group, .group_src = source});
        if (group->rank() != source) each([](Tensor one, const Tensor& part) { one.copy_(part); });
      }
      begin = end;
    }
  }
}

}  // namespace tensorplay::nn::parallel
