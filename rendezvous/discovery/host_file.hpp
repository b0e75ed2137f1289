/// The folder in which the agents of a run leave word of who hosts their store: a file for each epoch, "host-1",
/// "host-2" and so on, the highest of which counts. A file is linked into place whole, so exactly one agent makes it,
/// on NFS too.
#pragma once

#include "runtime/base/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::rendezvous {

/// What a host writes about itself.
struct HostRecord {
  std::string host;                    ///< Its name, for people.
  std::vector<std::string> addresses;  ///< In digits, the best first.
  std::uint16_t port = 0;
  std::string identity;   ///< base::host_identity(): whose loopback leads to it.
  std::string pid_space;  ///< Whose process ids may be compared with `pid`.
  int pid = 0;
  std::string user;
  std::uint64_t least_epoch = 0;  ///< Of its store; for etcd, which else counts by its own revision.
  std::uint64_t started = 0;      ///< When that process began, in the kernel's ticks: a pid may be used again.
  bool operator==(const HostRecord&) const = default;
};

std::string to_text(const HostRecord& record);
/// nullopt for a text that is no record.
std::optional<HostRecord> parse_host_record(const std::string& text);

/// This process, reachable at `addresses`.
HostRecord own_record(std::vector<std::string> addresses, std::uint16_t port, const std::string& user);

/// Whether the process of the record is certainly not there any more, as far as this host can tell.
bool is_certainly_gone(const HostRecord& record);

/// Thread rules: one user at a time. Ownership: a host's file is locked while it is held, and goes with this object.
class HostFolder {
 public:
  /// Makes `<folder>/tprun-<run id>` where it is not there. Throws DistStoreError when that cannot be, or when it is
  /// another user's.
  HostFolder(const std::string& folder, const std::string& run_id);
  ~HostFolder();
  HostFolder(const HostFolder&) = delete;
  HostFolder& operator=(const HostFolder&) = delete;

  struct Entry {
    std::uint64_t epoch = 0;
    HostRecord record;
    std::optional<bool> is_locked;  ///< nullopt: locks do not work here, or only within a host.
  };

  /// The file of the highest epoch; nullopt when there is none. Throws DistStoreError when the folder cannot be read.
  std::optional<Entry> newest() const;

  /// Makes the file of `epoch`. Whether that worked: false when there is one already, or a higher one.
  bool try_claim(std::uint64_t epoch, const HostRecord& record);

  const std::string& path() const { return path_; }

 private:
  std::string file_of(std::uint64_t epoch) const;
  std::vector<std::uint64_t> epochs() const;

  std::string path_;
  std::uint64_t claimed_ = 0;  ///< 0: none.
  base::UniqueFd lock_;
};

/// A run id as a file's name: what is not a letter, a digit or one of "._-" becomes %XX; cut off where it is too long.
std::string file_name_of(const std::string& run_id);

}  // namespace tensorplay::rendezvous
