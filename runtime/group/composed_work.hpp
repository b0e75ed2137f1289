/// One Work for several.
#pragma once

#include "tensorplay/distributed/work.hpp"

#include <memory>
#include <string>
#include <vector>

namespace tensorplay::distributed {

/// Complete when all are; its result is theirs in order, its error the first one's in order. Null entries count as
/// complete.
std::shared_ptr<Work> compose_works(std::string name, std::vector<std::shared_ptr<Work>> works);

}  // namespace tensorplay::distributed
