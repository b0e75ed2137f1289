/// What tprun wants to know of the machine while it decides what to run: files, folders, CPUs, devices. An interface,
/// so that a plan can be made for a machine that only a test knows. Thread rules: one thread. Nothing is cached but the
/// list of NVIDIA devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tensorplay::agent {

enum class FileKind {
  kMissing,
  kUnreachable,  ///< A folder on the way may not be searched.
  kFile,         ///< A regular file without execute permission for us.
  kExecutable,   ///< A regular file that we may execute.
  kFolder,
  kOther,  ///< A pipe, a device, a socket.
};

/// A GPU as NVIDIA's management library or driver files tell it.
struct NvidiaDevice {
  std::string uuid;                    ///< "GPU-..."; empty when unknown.
  std::string pci_address;             ///< "0000:3b:00.0", lower case; empty when unknown.
  std::vector<std::string> mig_uuids;  ///< "MIG-...": its instances; empty when it is not divided.
  bool is_mig_enabled = false;
};

class Machine {
 public:
  virtual ~Machine() = default;

  virtual FileKind kind_of(const std::string& path) const = 0;
  virtual std::optional<std::string> read_file(const std::string& path) const = 0;

  /// Names in a folder, in no order; empty when there is no such folder.
  virtual std::vector<std::string> list_folder(const std::string& path) const = 0;

  /// CPUs this process may use, ascending.
  virtual std::vector<int> allowed_cpus() const = 0;

  /// NVIDIA's GPUs in PCI order, from its management library; nullopt when that is not there.
  virtual std::optional<std::vector<NvidiaDevice>> nvidia_devices_by_library() const = 0;

  /// Folders in which tprun itself lies: that of the name it was called by, then that of the file behind the links.
  virtual std::vector<std::string> own_folders() const = 0;

  /// This host's name, with its domain where the machine itself knows it; nobody is asked over the network.
  virtual std::string host_name() const = 0;

  /// The command lines of the processes above this one, the parent's first, words joined by blanks; as far as they can
  /// be seen.
  virtual std::vector<std::string> ancestors() const = 0;

  /// A fresh random UUID (version 4), as text.
  virtual std::string fresh_uuid() const = 0;
};

}  // namespace tensorplay::agent
