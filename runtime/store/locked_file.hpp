/// A file that processes on many hosts read and append to under flock(2), and the two ways in which it can go away.
#pragma once

#include "runtime/base/fd.hpp"
#include "tensorplay/distributed/deadline.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace tensorplay::store {

/// Holds a lock on an open file until it goes. Move-only.
class FileLock {
 public:
  FileLock() noexcept = default;
  explicit FileLock(int fd) noexcept : fd_(fd) {}
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  int fd_ = -1;
};

/// An open file and its path. Every call that fails throws DistStoreError naming the path and the reason.
/// Thread rules: none; its owner serialises. Locks are per open file, so two objects exclude each other even in one
/// process.
class LockedFile {
 public:
  enum class Mode { kShared, kExclusive };

  /// Opens, creating it if need be. Waits a moment for a directory that another host has just made.
  LockedFile(std::string path, distributed::Deadline deadline);

  /// Takes the lock, looking again every few milliseconds until the deadline: blocking in flock could not be ended.
  FileLock lock(Mode mode, distributed::Deadline deadline) const;

  /// Whether the path still leads to this file. Sure only while the lock is held.
  bool is_at_its_path() const;

  std::uint64_t size() const;
  /// `count` bytes from `offset`, fewer at the end of the file.
  std::string read(std::uint64_t offset, std::uint64_t count) const;
  /// Writes all of `bytes` at `offset`, or, where the disk is full, nothing.
  void write(std::uint64_t offset, std::string_view bytes) const;
  void truncate(std::uint64_t size) const;
  void remove() const noexcept;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  base::UniqueFd fd_;
};

/// Tells whether anybody else uses a store file: each user holds a shared lock on `path.users` for as long as it
/// lives, and the kernel, or the file server, drops the lock of a process that died.
class UsersLock {
 public:
  enum class Others { kNone, kSome, kUnknown };

  /// Opens `path.users` beside the store file, whose exclusive lock the caller holds, and looks who else is there.
  /// kUnknown when it cannot be opened or locked: then nothing may be concluded.
  static Others look(const std::string& store_path, UsersLock& result);

  /// Becomes a user. Call under the store file's exclusive lock.
  bool join();

  /// Removes `path.users`, after the store file itself. Others that still hold it lose nothing.
  static void remove(const std::string& store_path) noexcept;

 private:
  base::UniqueFd fd_;
};

}  // namespace tensorplay::store
