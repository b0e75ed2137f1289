/// What every call of the public API begins and ends with.
#pragma once

#include "tensorplay/distributed/init.hpp"
#include "tensorplay/distributed/process_group.hpp"
#include "tensorplay/distributed/tensor.hpp"
#include "tensorplay/distributed/work.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace tensorplay::distributed {

/// The group a call is for. Null, after one warning in a process for each name of a call, when this rank is no member:
/// the call has no effect then.
Group enter(const Group& group, const char* call);

/// How the backend is to carry a call out: in a coalesced block everything is asynchronous.
CallOptions how(const ProcessGroup& group, std::chrono::milliseconds timeout, bool async_op);

/// What the caller gets: the Work of an asynchronous operation, null after a synchronous one. In a coalesced block the
/// block keeps it.
std::shared_ptr<Work> leave(const ProcessGroup& group, std::shared_ptr<Work> work, bool async_op);

// ---- Checks of what one rank can see. Each throws InvalidArgument that begins with the call's name.

void check_defined(const Tensor& tensor, const char* call);
void check_same_kind(const Tensor& a, const Tensor& b, const char* call);

/// One tensor for each rank, all of `one`'s dtype and device; of its size too unless sizes may differ.
void check_list(const std::vector<Tensor>& list, const Tensor& one, const ProcessGroup& group, bool sizes_may_differ,
                const char* call);

/// `whole` has as many elements as all ranks' `part`s together.
void check_single(const Tensor& whole, const Tensor& part, const ProcessGroup& group, const char* call);

/// A rank given as a global or as a group rank, to a group rank. Neither given: global rank 0, or InvalidArgument.
int group_rank(const ProcessGroup& group, std::optional<int> global, std::optional<int> in_group, const char* call,
               bool has_default = true);

}  // namespace tensorplay::distributed
