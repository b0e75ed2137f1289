/// What the user wrote cannot be done as written: command line, environment or configuration file. main prints it as
/// one line after "tprun: " and exits with exit_code::kUsage.
#pragma once

#include <stdexcept>
#include <string>

namespace tensorplay::agent {

class UsageError : public std::runtime_error {
 public:
  /// `what` says where, what is wrong and what would be right: "--nnodes=a: not a node count; give N or MIN:MAX".
  explicit UsageError(const std::string& what) : std::runtime_error(what) {}
};

/// One that another process of the same job prints: main exits with the same code and says nothing.
class RepeatedUsageError final : public UsageError {
 public:
  using UsageError::UsageError;
};

}  // namespace tensorplay::agent
