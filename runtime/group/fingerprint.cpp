#include "runtime/group/fingerprint.hpp"

#include "runtime/group/roll_call.hpp"

#include <algorithm>
#include <utility>

namespace tensorplay::distributed {
namespace {

std::string describe_rest(std::optional<int> root, std::optional<ReduceOp> op) {
  std::string text;
  if (op) text.append(" with ").append(to_string(*op));
  if (op && op->kind() == ReduceOp::PREMUL_SUM) text.append(" by ").append(std::to_string(op->factor()));
  if (root) text.append(", root rank ").append(std::to_string(*root));
  return text;
}

}  // namespace

Fingerprint fingerprint_of(OpType type, const Tensor& tensor, std::optional<int> root, std::optional<ReduceOp> op) {
  Fingerprint fingerprint;
  fingerprint.text = to_string(type);
  if (tensor.defined()) {
    fingerprint.text.append(" of ")
        .append(std::to_string(tensor.numel()))
        .append(" ")
        .append(to_string(tensor.dtype()));
  }
  fingerprint.text += describe_rest(root, op);
  return fingerprint;
}

Fingerprint pairwise_fingerprint_of(OpType type, const Tensor& like, std::vector<std::int64_t> sends,
                                    std::vector<std::int64_t> expects, std::optional<int> root,
                                    std::optional<ReduceOp> op) {
  Fingerprint fingerprint;
  fingerprint.text.append(to_string(type)).append(" of ").append(to_string(like.dtype()));
  fingerprint.text += describe_rest(root, op);
  fingerprint.sends = std::move(sends);
  fingerprint.expects = std::move(expects);
  return fingerprint;
}

std::string describe_difference(const std::vector<std::string>& texts) {
  if (std::all_of(texts.begin(), texts.end(), [&](const auto& text) { return text == texts.front(); })) return {};
  std::vector<std::pair<std::string, std::vector<int>>> groups;  // In the order of their first ranks.
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    auto place =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == texts[rank]; });
    if (place == groups.end()) place = groups.insert(groups.end(), {texts[rank], {}});
    place->second.push_back(static_cast<int>(rank));
  }
  std::string text;
  for (const auto& [call, ranks] : groups) {
    if (!text.empty()) text += "; ";
    text += name_ranks(ranks) + (ranks.size() > 1 ? " call " : " calls ") + call;
  }
  return text;
}

std::string describe_pair_difference(const std::vector<std::vector<std::int64_t>>& sends,
                                     const std::vector<std::vector<std::int64_t>>& expects) {
  for (std::size_t from = 0; from < sends.size(); ++from) {
    for (std::size_t to = 0; to < sends.size(); ++to) {
      const auto sent = sends[from][to];
      const auto expected = expects[to][from];
      if (sent == expected || sent == Fingerprint::kUntold || expected == Fingerprint::kUntold) continue;
      return "rank " + std::to_string(from) + " sends " + std::to_string(sent) + " elements to rank " +
             std::to_string(to) + ", which expects " + std::to_string(expected);
    }
  }
  return {};
}

}  // namespace tensorplay::distributed
