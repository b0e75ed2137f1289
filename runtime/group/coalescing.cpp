#include "runtime/group/coalescing.hpp"

#include "runtime/group/call.hpp"
#include "runtime/group/composed_work.hpp"
#include "tensorplay/distributed/collectives.hpp"
#include "tensorplay/distributed/errors.hpp"

namespace tensorplay::distributed {
namespace {

thread_local Coalescing* t_innermost = nullptr;

}  // namespace

Coalescing::Coalescing(const ProcessGroup& group) : group_(group), outer_(t_innermost) {
  if (of(group) != nullptr)
    throw InvalidArgument("coalesced: this thread is in a coalesced block of the group already");
  t_innermost = this;
}

Coalescing::~Coalescing() {
  t_innermost = outer_;
}

Coalescing* Coalescing::of(const ProcessGroup& group) noexcept {
  for (auto* block = t_innermost; block != nullptr; block = block->outer_) {
    if (&block->group_ == &group) return block;
  }
  return nullptr;
}

WorkPtr coalesced(const std::function<void()>& body, const CoalescedOptions& options) {
  const auto group = enter(options.group, "coalesced");
  if (!group) return nullptr;
  std::vector<WorkPtr> works;
  {
    Coalescing block(*group);
    body();
    works = block.take();
  }
  auto whole = compose_works("coalesced", std::move(works));
  if (options.async_op) return whole;
  whole->wait();
  return nullptr;
}

}  // namespace tensorplay::distributed
