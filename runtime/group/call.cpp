#include "runtime/group/call.hpp"

#include "runtime/base/log.hpp"
#include "runtime/group/coalescing.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <mutex>
#include <set>
#include <string>

namespace tensorplay::distributed {
namespace {

void warn_once(const char* call) {
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::lock_guard lock(mutex);
  if (!told.insert(call).second) return;
  base::log::warning(std::string(call) + ": this rank does not belong to the group; the call has no effect");
}

}  // namespace

Group enter(const Group& group, const char* call) {
  if (!group) return get_default_group();
  if (group->is_member()) return group;
  warn_once(call);
  return nullptr;
}

CallOptions how(const ProcessGroup& group, std::chrono::milliseconds timeout, bool async_op) {
  return {timeout, async_op || Coalescing::of(group) != nullptr};
}

std::shared_ptr<Work> leave(const ProcessGroup& group, std::shared_ptr<Work> work, bool async_op) {
  if (auto* block = Coalescing::of(group)) {
    block->add(std::move(work));
    return nullptr;
  }
  return async_op ? work : nullptr;
}

void check_defined(const Tensor& tensor, const char* call) {
  if (!tensor.defined()) throw InvalidArgument(std::string(call) + ": the tensor is not defined");
}

void check_same_kind(const Tensor& a, const Tensor& b, const char* call) {
  check_defined(b, call);
  if (a.dtype() == b.dtype() && a.device().type == b.device().type) return;
  throw InvalidArgument(std::string(call)
                            .append(": the tensors differ: ")
                            .append(to_string(a.dtype()))
                            .append(" on ")
                            .append(to_string(a.device()))
                            .append(" and ")
                            .append(to_string(b.dtype()))
                            .append(" on ")
                            .append(to_string(b.device())));
}

void check_list(const std::vector<Tensor>& list, const Tensor& one, const ProcessGroup& group, bool sizes_may_differ,
                const char* call) {
  if (static_cast<int>(list.size()) != group.size()) {
    throw InvalidArgument(std::string(call) + ": " + std::to_string(list.size()) + " tensors for a group of " +
                          std::to_string(group.size()) + " ranks");
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    check_same_kind(one, list[i], call);
    const bool is_own = static_cast<int>(i) == group.rank();
    if (list[i].numel() != one.numel() && (is_own || !sizes_may_differ)) {
      throw InvalidArgument(std::string(call) + ": tensor " + std::to_string(i) + " has shape " +
                            tensorplay::to_string(list[i].shape()) + ", the other side " +
                            tensorplay::to_string(one.shape()));
    }
  }
}

void check_single(const Tensor& whole, const Tensor& part, const ProcessGroup& group, const char* call) {
  check_defined(whole, call);
  check_same_kind(whole, part, call);
  if (whole.numel() == part.numel() * group.size()) return;
  throw InvalidArgument(std::string(call) + ": " + std::to_string(whole.numel()) + " elements are not " +
                        std::to_string(group.size()) + " times " + std::to_string(part.numel()));
}

int group_rank(const ProcessGroup& group, std::optional<int> global, std::optional<int> in_group, const char* call,
               bool has_default) {
  if (global && in_group) throw InvalidArgument(std::string(call) + ": give a global rank or a group rank, not both");
  if (in_group) {
    group.global_rank_of(*in_group);  // Throws for a rank that is none.
    return *in_group;
  }
  if (!global && !has_default) throw InvalidArgument(std::string(call) + ": the other rank is missing");
  return group.group_rank_of(global.value_or(0));
}

}  // namespace tensorplay::distributed
