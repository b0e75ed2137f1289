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

}  // namespace tensorplay::agent
