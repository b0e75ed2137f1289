/// A stored value that replies may share: a reply of 8 MiB to ten thousand waiters is held in memory once.
///
/// Whoever holds the only reference may change it in place; everybody else treats it as immutable.
/// Thread rules: the count is atomic, the bytes are not guarded.
#pragma once

#include <memory>
#include <string>

namespace tensorplay::store {

using Blob = std::shared_ptr<std::string>;

inline Blob make_blob(std::string&& bytes) {
  return std::make_shared<std::string>(std::move(bytes));
}

}  // namespace tensorplay::store
