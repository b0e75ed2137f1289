/// Collectives on objects: nlohmann::json, whatever converts to and from it, and tensors.
///
/// Objects travel as MessagePack: NaN, infinities, binary and integers arrive as they left; nothing that arrives is
/// ever executed. A Tensor is an object too (its dtype, shape and bytes) and arrives on the CPU. What a peer announces
/// is compared with `max_bytes` before memory is taken, and what it sends is checked before it is converted.
///
/// Use them with caution. Each has two collectives inside: sizes, then bytes. Converting takes time that depends on the
/// objects; where many ranks send to one, that one converts all of them, and the others may meet their deadline in the
/// next collective. Tensors should go through the ordinary collectives, which neither copy nor convert them; one on a
/// device is copied to the CPU first.
///
/// All ranks call with lists of the same length; group, roots, timeouts and errors are those of collectives.hpp, and
/// DistBackendError for bytes that are no object or no `T`. Needs nlohmann/json.hpp.
/// Source of the semantics: c10d's object collectives.
#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/init.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay {

/// A tensor as an object; the device's elements are copied, a strided tensor becomes contiguous.
TP_API void to_json(nlohmann::json& object, const Tensor& tensor);
TP_API void from_json(const nlohmann::json& object, Tensor& tensor);

namespace distributed {

using Object = nlohmann::json;

/// No object of more bytes is taken from a peer.
inline constexpr std::int64_t kMaxObjectBytes = std::int64_t{1} << 30;

/// Options of all object collectives; each reads those that concern it.
struct ObjectOptions {
  std::optional<int> src = {};  ///< Of broadcast, scatter and recv: a global rank; neither given: 0, or any for recv.
  std::optional<int> dst = {};  ///< Of gather and send.
  Group group = {};
  std::optional<Device> device = {};  ///< Where tensors arrive; the CPU is what there is.
  std::optional<int> group_src = {};
  std::optional<int> group_dst = {};
  std::chrono::milliseconds timeout{0};
  std::int64_t max_bytes = kMaxObjectBytes;
};

/// Every rank's list becomes the source's.
TP_API void broadcast_object_list(std::vector<Object>& list, const ObjectOptions& options = {});

/// list[r] becomes rank r's object; the list is made as long as the group.
TP_API void all_gather_object(std::vector<Object>& list, const Object& object, const ObjectOptions& options = {});

/// On the destination list[r] becomes rank r's object. `list` is null everywhere else.
TP_API void gather_object(const Object& object, std::vector<Object>* list = nullptr, const ObjectOptions& options = {});

/// output[0] becomes the source's inputs[own rank]; `inputs` is read on the source only.
TP_API void scatter_object_list(std::vector<Object>& output, const std::vector<Object>& inputs = {},
                                const ObjectOptions& options = {});

TP_API void send_object_list(const std::vector<Object>& list, const ObjectOptions& options);

/// Fills the list, which is as long as the sender's; returns the sender's global rank, -1 where this rank is no member.
TP_API int recv_object_list(std::vector<Object>& list, const ObjectOptions& options = {});

namespace detail {

template <typename T>
std::vector<Object> to_objects(const std::vector<T>& values) {
  return std::vector<Object>(values.begin(), values.end());
}

/// DistBackendError when one is no T.
TP_API void throw_not_convertible(const char* call, const std::string& reason);

template <typename T>
std::vector<T> from_objects(const std::vector<Object>& objects, const char* call) {
  std::vector<T> values;
  try {
    for (const auto& object : objects) values.push_back(object.template get<T>());
  } catch (const nlohmann::json::exception& error) {
    throw_not_convertible(call, error.what());
  }
  return values;
}

}  // namespace detail

// ---- The same for any T with to_json and from_json.

template <typename T>
void broadcast_object_list(std::vector<T>& list, const ObjectOptions& options = {}) {
  auto objects = detail::to_objects(list);
  broadcast_object_list(objects, options);
  list = detail::from_objects<T>(objects, "broadcast_object_list");
}

template <typename T>
void all_gather_object(std::vector<T>& list, const T& object, const ObjectOptions& options = {}) {
  std::vector<Object> objects;
  all_gather_object(objects, Object(object), options);
  list = detail::from_objects<T>(objects, "all_gather_object");
}

template <typename T>
void gather_object(const T& object, std::vector<T>* list, const ObjectOptions& options = {}) {
  std::vector<Object> objects;
  gather_object(Object(object), list != nullptr ? &objects : nullptr, options);
  if (list != nullptr) *list = detail::from_objects<T>(objects, "gather_object");
}

template <typename T>
void scatter_object_list(std::vector<T>& output, const std::vector<T>& inputs = {}, const ObjectOptions& options = {}) {
  std::vector<Object> objects(1);
  scatter_object_list(objects, detail::to_objects(inputs), options);
  output = detail::from_objects<T>(objects, "scatter_object_list");
}

template <typename T>
void send_object_list(const std::vector<T>& list, const ObjectOptions& options) {
  send_object_list(detail::to_objects(list), options);
}

template <typename T>
int recv_object_list(std::vector<T>& list, const ObjectOptions& options = {}) {
  std::vector<Object> objects(list.size());
  const int sender = recv_object_list(objects, options);
  if (sender >= 0) list = detail::from_objects<T>(objects, "recv_object_list");
  return sender;
}

}  // namespace distributed
}  // namespace tensorplay
