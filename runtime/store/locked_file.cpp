#include "runtime/store/locked_file.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <utility>

#include <sys/file.h>
#include <sys/stat.h>

namespace tensorplay::store {
namespace {

using distributed::Deadline;
using namespace std::chrono_literals;

constexpr auto kShortPause = 500us;
constexpr auto kLongPause = 10ms;
constexpr auto kDirectoryGrace = 2s;
constexpr int kShortPauses = 20;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw distributed::DistStoreError("file store " + path + ": " + what);
}

[[noreturn]] void fail_errno(const std::string& path, const std::string& what, int error) {
  if (error == ESTALE) fail(path, "was removed by another host while in use");
  fail(path, what + ": " + std::strerror(error));
}

void pause(int attempt) {
  std::this_thread::sleep_for(attempt < kShortPauses ? kShortPause : kLongPause);
}

base::UniqueFd open_file(const std::string& path, Deadline deadline) {
  // A name that another host has just made or removed may be unknown or stale here for a moment.
  const auto give_up = earlier(deadline, Deadline::after(kDirectoryGrace));
  for (int attempt = 0;; ++attempt) {
    base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (fd) return fd;
    if ((errno != ENOENT && errno != ESTALE && errno != EINTR) || give_up.has_passed()) {
      fail_errno(path, "cannot open", errno);
    }
    pause(attempt);
  }
}

bool has_no_locks(int error) {
  return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}

}  // namespace

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::flock(fd_, LOCK_UN);
}

LockedFile::LockedFile(std::string path, Deadline deadline) : path_(std::move(path)), fd_(open_file(path_, deadline)) {}

FileLock LockedFile::lock(Mode mode, Deadline deadline) const {
  const int operation = (mode == Mode::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  const auto start = Deadline::Clock::now();
  for (int attempt = 0;; ++attempt) {
    if (::flock(fd_.get(), operation) == 0) return FileLock(fd_.get());
    if (has_no_locks(errno)) {
      fail(path_, std::string("the file system there has no file locks (flock: ") + std::strerror(errno) +
                      "); use a file on one that has, or a TCPStore");
    }
    if (errno != EWOULDBLOCK && errno != EINTR) fail_errno(path_, "cannot lock", errno);
    if (deadline.has_passed()) {
      const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - start);
      throw distributed::StoreTimeoutError("file store " + path_ + ": another process has held its lock for " +
                                           std::to_string(waited.count()) + " ms");
    }
    pause(attempt);
  }
}

bool LockedFile::is_at_its_path() const {
  struct stat own {};
  struct stat named {};
  if (::fstat(fd_.get(), &own) != 0 || own.st_nlink == 0) return false;
  return ::stat(path_.c_str(), &named) == 0 && own.st_ino == named.st_ino && own.st_dev == named.st_dev;
}

std::uint64_t LockedFile::size() const {
  struct stat own {};
  if (::fstat(fd_.get(), &own) != 0) fail_errno(path_, "cannot look at it", errno);
  if (own.st_nlink == 0) fail(path_, "was removed while in use");
  return static_cast<std::uint64_t>(own.st_size);
}

std::string LockedFile::read(std::uint64_t offset, std::uint64_t count) const {
  std::string bytes(count, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(fd_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno(path_, "cannot read", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

void LockedFile::write(std::uint64_t offset, std::string_view bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put =
        ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int error = put == 0 ? ENOSPC : errno;
      (void)!::ftruncate(fd_.get(), static_cast<off_t>(offset));  // no torn record by our own hand
      fail_errno(path_, "cannot write", error);
    }
    done += static_cast<std::size_t>(put);
  }
}

void LockedFile::truncate(std::uint64_t size) const {
  if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) fail_errno(path_, "cannot shorten", errno);
}

void LockedFile::remove() const noexcept {
  ::unlink(path_.c_str());
}

namespace {

std::string users_path(const std::string& store_path) {
  return store_path + ".users";
}

}  // namespace

UsersLock::Others UsersLock::look(const std::string& store_path, UsersLock& result) {
  result.fd_.reset(::open(users_path(store_path).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!result.fd_) return Others::kUnknown;
  if (::flock(result.fd_.get(), LOCK_EX | LOCK_NB) == 0) return Others::kNone;
  return errno == EWOULDBLOCK ? Others::kSome : Others::kUnknown;
}

bool UsersLock::join() {
  return fd_ && ::flock(fd_.get(), LOCK_SH | LOCK_NB) == 0;
}

void UsersLock::remove(const std::string& store_path) noexcept {
  ::unlink(users_path(store_path).c_str());
}

}  // namespace tensorplay::store
