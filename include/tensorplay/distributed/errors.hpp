/// The errors of the runtime: typed, so that a caller can tell a dead peer from a bad argument.
///
///   DistError                    anything the runtime reports
///     DistBackendError           a collective or its transport failed
///     DistStoreError             a store refused, or lost, a request
///       StoreTimeoutError        a store wait passed its deadline
///       DistQueueEmptyError      a queue had nothing to pop
///     DistNetworkError           a connection failed
///       SocketError              a system call on a socket failed
///       TimeoutError             a connection was not made in time
///     NotImplementedError        this store or backend cannot do that
///   InvalidArgument              the caller's mistake (std::invalid_argument)
///
/// Thread rules: values; copy them freely. Source: the error classes of c10d.
#pragma once

#include "tensorplay/distributed/export.hpp"

#include <stdexcept>
#include <string>

namespace tensorplay::distributed {

class TP_API DistError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class TP_API DistBackendError : public DistError {
 public:
  using DistError::DistError;
};

class TP_API DistStoreError : public DistError {
 public:
  using DistError::DistError;
};

class TP_API StoreTimeoutError : public DistStoreError {
 public:
  using DistStoreError::DistStoreError;
};

class TP_API DistQueueEmptyError : public DistStoreError {
 public:
  using DistStoreError::DistStoreError;
};

class TP_API DistNetworkError : public DistError {
 public:
  using DistError::DistError;
};

class TP_API SocketError : public DistNetworkError {
 public:
  using DistNetworkError::DistNetworkError;
};

class TP_API TimeoutError : public DistNetworkError {
 public:
  using DistNetworkError::DistNetworkError;
};

class TP_API NotImplementedError : public DistError {
 public:
  using DistError::DistError;
};

class TP_API InvalidArgument : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace tensorplay::distributed
