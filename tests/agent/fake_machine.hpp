/// A machine made of a few files and numbers, for tests of what tprun decides.
#pragma once

#include "agent/machine.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tensorplay::agent {

class FakeMachine final : public Machine {
 public:
  std::map<std::string, std::string> files;
  std::set<std::string> executables;
  std::set<std::string> folders;
  std::vector<int> cpus{0, 1, 2, 3};
  std::optional<std::vector<NvidiaDevice>> nvidia;
  std::vector<std::string> own;
  std::string host = "vm";
  std::vector<std::string> above;
  std::string uuid = "00000000-0000-4000-8000-000000000000";

  FakeMachine() { add_executable("/usr/bin/python3"); }

  void add_file(const std::string& path, const std::string& text = "") { files[path] = text; }
  void add_executable(const std::string& path) {
    files[path] = "";
    executables.insert(path);
  }

  FileKind kind_of(const std::string& path) const override {
    if (executables.contains(path)) return FileKind::kExecutable;
    if (files.contains(path)) return FileKind::kFile;
    return folders.contains(path) ? FileKind::kFolder : FileKind::kMissing;
  }
  std::optional<std::string> read_file(const std::string& path) const override {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::string> list_folder(const std::string& path) const override {
    std::set<std::string> names;
    for (const auto& [file, text] : files) {
      if (file.starts_with(path + "/"))
        names.insert(file.substr(path.size() + 1, file.find('/', path.size() + 1) - path.size() - 1));
    }
    return {names.begin(), names.end()};
  }
  std::vector<int> allowed_cpus() const override { return cpus; }
  std::optional<std::vector<NvidiaDevice>> nvidia_devices_by_library() const override { return nvidia; }
  std::vector<std::string> own_folders() const override { return own; }
  std::string host_name() const override { return host; }
  std::vector<std::string> ancestors() const override { return above; }
  std::string fresh_uuid() const override { return uuid; }
};

}  // namespace tensorplay::agent
