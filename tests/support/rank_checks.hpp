/// What a rank checks inside its thread. Catch2's assertions are not for threads: a rank throws, and the test looks at
/// how the ranks ended.
#pragma once

#include "tensorplay/distributed.hpp"

#include <functional>
#include <stdexcept>
#include <string>

namespace tensorplay::testing {

inline void check(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

inline void check_equal(const Tensor& actual, const Tensor& expected, const std::string& what) {
  if (!equal(actual, expected)) {
    throw std::runtime_error(what + ": " + to_string(actual) + " instead of " + to_string(expected));
  }
}

/// The call has to throw InvalidArgument.
inline void refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const distributed::InvalidArgument&) {
    return;
  }
  throw std::runtime_error("was not refused");
}

/// What the call throws; it has to.
template <typename Error = distributed::DistBackendError>
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  throw std::runtime_error("ended well");
}

}  // namespace tensorplay::testing
