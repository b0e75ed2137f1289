/// Objects to bytes and back.
#pragma once

#include "tensorplay/distributed/objects.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tensorplay::distributed {

std::vector<std::uint8_t> pack_object(const Object& object);

/// DistBackendError, beginning with `what`, for bytes that are no MessagePack, go on after its end, or are nested more
/// than a thousand levels deep.
Object unpack_object(const std::uint8_t* bytes, std::size_t size, const std::string& what);

}  // namespace tensorplay::distributed
