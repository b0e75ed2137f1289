#include "runtime/group/call.hpp"
#include "runtime/group/objects.hpp"
#include "tensorplay/distributed/collectives.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/point_to_point.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tensorplay::distributed {
namespace {

using Bytes = std::vector<std::uint8_t>;

void check_device(const ObjectOptions& options, const char* call) {
  if (!options.device || options.device->is_cpu()) return;
  throw NotImplementedError(std::string(call) + ": tensors cannot be put on " + to_string(*options.device) +
                            " in this build");
}

Tensor as_tensor(Bytes& bytes) {
  return Tensor::from_pointer(bytes.data(), DType::kUInt8, {static_cast<std::int64_t>(bytes.size())});
}

Tensor as_tensor(std::vector<std::int64_t>& counts) {
  return Tensor::from_span(std::span<std::int64_t>(counts));
}

/// What a peer announces, before memory is taken for it; the sum of all.
std::size_t checked_total(const std::vector<std::int64_t>& sizes, const ObjectOptions& options, const char* call) {
  std::int64_t total = 0;
  for (const auto size : sizes) {
    if (size < 0 || size > options.max_bytes || total > options.max_bytes - size) {
      throw DistBackendError(std::string(call) + ": a peer announces objects of " + std::to_string(size) +
                             " bytes; max_bytes is " + std::to_string(options.max_bytes));
    }
    total += size;
  }
  return static_cast<std::size_t>(total);
}

struct PackedObjects {
  std::vector<std::int64_t> sizes;
  Bytes bytes;
};

PackedObjects pack(const std::vector<Object>& list) {
  PackedObjects packed;
  for (const auto& object : list) {
    const auto bytes = pack_object(object);
    packed.sizes.push_back(static_cast<std::int64_t>(bytes.size()));
    packed.bytes.insert(packed.bytes.end(), bytes.begin(), bytes.end());
  }
  return packed;
}

std::vector<Object> unpack(const PackedObjects& packed, const char* call) {
  std::vector<Object> list;
  const std::uint8_t* next = packed.bytes.data();
  for (const auto size : packed.sizes) {
    list.push_back(unpack_object(next, static_cast<std::size_t>(size), call));
    next += size;
  }
  return list;
}

/// One object of each rank, of sizes that are known, one after the other in `bytes`.
std::vector<Tensor> parts_of(Bytes& bytes, const std::vector<std::int64_t>& sizes) {
  std::vector<Tensor> parts;
  const Tensor whole = as_tensor(bytes);
  std::int64_t start = 0;
  for (const auto size : sizes) {
    parts.push_back(whole.slice(0, start, start + size));
    start += size;
  }
  return parts;
}

/// Every rank's size.
std::vector<std::int64_t> gather_sizes(const Group& group, std::int64_t mine, const ObjectOptions& options) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(group->size()));
  std::vector<std::int64_t> own = {mine};
  all_gather_single(as_tensor(sizes), as_tensor(own), {.group = group, .timeout = options.timeout});
  return sizes;
}

}  // namespace

void broadcast_object_list(std::vector<Object>& list, const ObjectOptions& options) {
  const char* const call = "broadcast_object_list";
  const auto group = enter(options.group, call);
  if (!group) return;
  check_device(options, call);
  if (list.empty()) throw InvalidArgument("broadcast_object_list: the list is empty");
  const int root = group_rank(*group, options.src, options.group_src, call);
  PackedObjects packed;
  if (group->rank() == root) packed = pack(list);
  packed.sizes.resize(list.size());
  const BroadcastOptions how{.group = group, .group_src = root, .timeout = options.timeout};
  broadcast(as_tensor(packed.sizes), how);
  if (group->rank() != root) packed.bytes.resize(checked_total(packed.sizes, options, call));
  broadcast(as_tensor(packed.bytes), how);
  if (group->rank() != root) list = unpack(packed, call);
}

void all_gather_object(std::vector<Object>& list, const Object& object, const ObjectOptions& options) {
  const char* const call = "all_gather_object";
  const auto group = enter(options.group, call);
  if (!group) return;
  check_device(options, call);
  PackedObjects mine = pack({object});
  PackedObjects all;
  all.sizes = gather_sizes(group, mine.sizes.front(), options);
  all.bytes.resize(checked_total(all.sizes, options, call));
  all_gather(parts_of(all.bytes, all.sizes), as_tensor(mine.bytes), {.group = group, .timeout = options.timeout});
  list = unpack(all, call);
}

void gather_object(const Object& object, std::vector<Object>* list, const ObjectOptions& options) {
  const char* const call = "gather_object";
  const auto group = enter(options.group, call);
  if (!group) return;
  check_device(options, call);
  const int root = group_rank(*group, options.dst, options.group_dst, call);
  const bool is_root = group->rank() == root;
  if (is_root != (list != nullptr)) {
    throw InvalidArgument(std::string(call) + (is_root ? ": the list has to be given on the destination"
                                                       : ": the list may be given on the destination only"));
  }
  PackedObjects mine = pack({object});
  PackedObjects all;
  all.sizes = gather_sizes(group, mine.sizes.front(), options);
  std::vector<Tensor> outputs;
  if (is_root) {
    all.bytes.resize(checked_total(all.sizes, options, call));
    outputs = parts_of(all.bytes, all.sizes);
  }
  gather(as_tensor(mine.bytes), outputs, {.group = group, .group_dst = root, .timeout = options.timeout});
  if (is_root) *list = unpack(all, call);
}

void scatter_object_list(std::vector<Object>& output, const std::vector<Object>& inputs, const ObjectOptions& options) {
  const char* const call = "scatter_object_list";
  const auto group = enter(options.group, call);
  if (!group) return;
  check_device(options, call);
  if (output.empty()) throw InvalidArgument("scatter_object_list: the output list has to have room for one object");
  const int root = group_rank(*group, options.src, options.group_src, call);
  const bool is_root = group->rank() == root;
  if (is_root && static_cast<int>(inputs.size()) != group->size()) {
    throw InvalidArgument("scatter_object_list: " + std::to_string(inputs.size()) + " objects for a group of " +
                          std::to_string(group->size()) + " ranks");
  }
  PackedObjects packed;
  if (is_root) packed = pack(inputs);
  packed.sizes.resize(static_cast<std::size_t>(group->size()));
  broadcast(as_tensor(packed.sizes), {.group = group, .group_src = root, .timeout = options.timeout});
  PackedObjects mine;
  mine.sizes = {packed.sizes[static_cast<std::size_t>(group->rank())]};
  mine.bytes.resize(checked_total(mine.sizes, options, call));
  const auto leaving = is_root ? parts_of(packed.bytes, packed.sizes) : std::vector<Tensor>{};
  scatter(as_tensor(mine.bytes), leaving, {.group = group, .group_src = root, .timeout = options.timeout});
  output[0] = unpack(mine, call).front();
}

void send_object_list(const std::vector<Object>& list, const ObjectOptions& options) {
  const char* const call = "send_object_list";
  const auto group = enter(options.group, call);
  if (!group) return;
  if (list.empty()) throw InvalidArgument("send_object_list: the list is empty");
  PackedObjects packed = pack(list);
  const SendOptions how{.dst = options.dst, .group = group, .group_dst = options.group_dst, .timeout = options.timeout};
  send(as_tensor(packed.sizes), how);
  send(as_tensor(packed.bytes), how);
}

int recv_object_list(std::vector<Object>& list, const ObjectOptions& options) {
  const char* const call = "recv_object_list";
  const auto group = enter(options.group, call);
  if (!group) return -1;
  check_device(options, call);
  if (list.empty()) throw InvalidArgument("recv_object_list: the list is empty; make it as long as the sender's");
  PackedObjects packed;
  packed.sizes.resize(list.size());
  const int sender =
      recv(as_tensor(packed.sizes),
           {.src = options.src, .group = group, .group_src = options.group_src, .timeout = options.timeout});
  packed.bytes.resize(checked_total(packed.sizes, options, call));
  recv(as_tensor(packed.bytes), {.src = sender, .group = group, .timeout = options.timeout});
  list = unpack(packed, call);
  return sender;
}

}  // namespace tensorplay::distributed
