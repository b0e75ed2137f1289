/// Machine as the kernel tells it: the one tprun really runs on.
#pragma once

#include "agent/machine.hpp"

namespace tensorplay::agent {

class ThisMachine final : public Machine {
 public:
  /// `called_as` is argv[0]: where tprun was called from matters when it is a link.
  explicit ThisMachine(std::string called_as) : called_as_(std::move(called_as)) {}

  FileKind kind_of(const std::string& path) const override;
  std::optional<std::string> read_file(const std::string& path) const override;
  std::vector<std::string> list_folder(const std::string& path) const override;
  std::vector<int> allowed_cpus() const override;
  std::optional<std::vector<NvidiaDevice>> nvidia_devices_by_library() const override;
  std::vector<std::string> own_folders() const override;
  std::string host_name() const override;
  std::vector<std::string> ancestors() const override;
  std::string fresh_uuid() const override;

 private:
  std::string called_as_;
};

}  // namespace tensorplay::agent
