#include "agent/atomic_file.hpp"

#include "runtime/base/fd.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

#include <sys/stat.h>

namespace tensorplay::agent {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw distributed::DistError(path + ": cannot be written: " + std::strerror(error));
}

/// True when all of it is written; else errno says why.
bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string without_links(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : path;
}

std::string temporary_beside(const std::string& target) {
  return target + ".tmp" + std::to_string(::getpid());
}

}  // namespace

void check_can_be_written(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
    if (::access(path.c_str(), W_OK) != 0) fail(path, errno);
    return;
  }
  const std::string temporary = temporary_beside(without_links(path));
  const base::UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) fail(path, errno);
  ::unlink(temporary.c_str());
}

void write_file_atomically(const std::string& path, std::string_view text) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    const base::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file || !write_all(file.get(), text)) fail(path, errno);
    return;
  }
  const std::string target = without_links(path);
  const std::string temporary = temporary_beside(target);
  base::UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) fail(path, errno);
  if (!write_all(file.get(), text) || ::rename(temporary.c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail(path, error);
  }
}

}  // namespace tensorplay::agent
