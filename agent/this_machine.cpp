#include "agent/this_machine.hpp"

#include "agent/nvidia_library.hpp"
#include "agent/process_tree.hpp"
#include "runtime/base/fd.hpp"
#include "runtime/base/host.hpp"

#include <climits>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <unistd.h>

#include <sys/random.h>
#include <sys/stat.h>

namespace tensorplay::agent {
namespace {

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

FileKind ThisMachine::kind_of(const std::string& path) const {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return errno == EACCES ? FileKind::kUnreachable : FileKind::kMissing;
  if (S_ISDIR(status.st_mode)) return FileKind::kFolder;
  if (!S_ISREG(status.st_mode)) return FileKind::kOther;
  return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? FileKind::kExecutable : FileKind::kFile;
}

std::optional<std::string> ThisMachine::read_file(const std::string& path) const {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> block;
  for (;;) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
  }
}

std::vector<std::string> ThisMachine::list_folder(const std::string& path) const {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (!folder) return names;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

std::vector<int> ThisMachine::allowed_cpus() const {
  // The kernel refuses a set smaller than its own; machines beyond 1,024 CPUs need a larger one.
  for (int most = CPU_SETSIZE; most <= (1 << 20); most *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(static_cast<std::size_t>(most)),
                                                               [](cpu_set_t* memory) { CPU_FREE(memory); });
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    CPU_ZERO_S(size, set.get());
    if (::sched_getaffinity(0, size, set.get()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < most; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), size, set.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  std::vector<int> cpus;
  for (int cpu = 0; cpu < ::sysconf(_SC_NPROCESSORS_ONLN); ++cpu) cpus.push_back(cpu);
  return cpus;
}

std::optional<std::vector<NvidiaDevice>> ThisMachine::nvidia_devices_by_library() const {
  return list_nvidia_devices();
}

std::vector<std::string> ThisMachine::own_folders() const {
  std::vector<std::string> folders;
  if (const std::string folder = folder_of(called_as_); !folder.empty()) {
    folders.push_back(folder);
  } else if (const char* path = std::getenv("PATH")) {
    std::string_view rest(path);
    while (folders.empty() && !rest.empty()) {
      const auto colon = rest.find(':');
      const std::string candidate(rest.substr(0, colon));
      if (kind_of(candidate + "/" + called_as_) == FileKind::kExecutable) folders.push_back(candidate);
      rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
    }
  }
  std::array<char, PATH_MAX> target;
  const ssize_t length = ::readlink("/proc/self/exe", target.data(), target.size());
  if (length > 0) {
    const std::string folder = folder_of(std::string(target.data(), static_cast<std::size_t>(length)));
    if (folders.empty() || folders.front() != folder) folders.push_back(folder);
  }
  return folders;
}

std::string ThisMachine::host_name() const {
  return base::full_host_name();
}

std::vector<std::string> ThisMachine::ancestors() const {
  std::vector<std::string> out;
  pid_t pid = ::getppid();
  while (pid > 0) {
    auto words = read_file("/proc/" + std::to_string(pid) + "/cmdline").value_or("");
    while (!words.empty() && words.back() == '\0') words.pop_back();
    std::replace(words.begin(), words.end(), '\0', ' ');
    out.push_back(std::move(words));
    const auto stat = read_process_stat(pid);
    if (!stat) break;
    pid = stat->parent;
  }
  return out;
}

std::string ThisMachine::fresh_uuid() const {
  std::array<unsigned char, 16> bytes{};
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace tensorplay::agent
