#include "rendezvous/discovery/host_file.hpp"

#include "runtime/base/host.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <memory>
#include <unistd.h>

#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

namespace tensorplay::rendezvous {

using distributed::DistStoreError;

namespace {

constexpr std::string_view kPrefix = "host-";
constexpr std::size_t kMaxRecordBytes = 64 << 10;
constexpr std::size_t kMaxNameBytes = 120;

DistStoreError failure(const std::string& path, const std::string& what) {
  return DistStoreError(path + ": " + what + ": " + std::strerror(errno));
}

std::string own_pid_space() {
  std::array<char, 64> text{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", text.data(), text.size());
  return base::boot_id() + '/' + std::string(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
}

/// Field 22 of /proc/<pid>/stat; 0 when there is no such process.
std::uint64_t start_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto name_end = text.rfind(')');  // The name before it may hold anything.
  if (name_end == std::string::npos) return 0;
  std::size_t at = name_end + 2;
  for (int field = 3; field < 22; ++field) at = text.find(' ', at) + 1;
  std::uint64_t started = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), started);
  return started;
}

std::optional<std::uint64_t> epoch_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::uint64_t epoch = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), epoch);
  if (error != std::errc() || end != name.data() + name.size() || epoch == 0) return std::nullopt;
  return epoch;
}

std::string random_name() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<std::uint64_t>(::getpid());
  return "." + base::short_host_name() + "-" + std::to_string(::getpid()) + "-" + std::to_string(number);
}

void write_whole(int fd, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw failure(path, "cannot be written");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  // A host that cannot be read by others is none: on NFS this is when the server has it.
  if (::fsync(fd) != 0) throw failure(path, "cannot be written");
}

}  // namespace

std::string to_text(const HostRecord& record) {
  nlohmann::ordered_json json;
  json["host"] = record.host;
  json["addresses"] = record.addresses;
  json["port"] = record.port;
  json["identity"] = record.identity;
  json["pid_space"] = record.pid_space;
  json["pid"] = record.pid;
  json["started"] = record.started;
  json["user"] = record.user;
  json["least_epoch"] = record.least_epoch;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::optional<HostRecord> parse_host_record(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    HostRecord record;
    json.at("host").get_to(record.host);
    json.at("addresses").get_to(record.addresses);
    json.at("port").get_to(record.port);
    json.at("identity").get_to(record.identity);
    json.at("pid_space").get_to(record.pid_space);
    json.at("pid").get_to(record.pid);
    json.at("started").get_to(record.started);
    json.at("user").get_to(record.user);
    json.at("least_epoch").get_to(record.least_epoch);
    if (record.port == 0) return std::nullopt;
    return record;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

HostRecord own_record(std::vector<std::string> addresses, std::uint16_t port, const std::string& user) {
  HostRecord record;
  record.host = base::short_host_name();
  record.addresses = std::move(addresses);
  record.port = port;
  record.identity = base::host_identity();
  record.pid_space = own_pid_space();
  record.pid = ::getpid();
  record.started = start_of(record.pid);
  record.user = user;
  return record;
}

bool is_certainly_gone(const HostRecord& record) {
  if (record.pid <= 0 || record.pid_space != own_pid_space()) return false;
  return start_of(record.pid) != record.started;
}

std::string file_name_of(const std::string& run_id) {
  std::string name;
  for (const char c : run_id) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-') {
      name += c;
    } else {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      name += '%';
      name += kHex[static_cast<unsigned char>(c) >> 4];
      name += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  if (name.size() <= kMaxNameBytes) return name;
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a: what is cut off still counts.
  for (const char c : run_id) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return name.substr(0, kMaxNameBytes - 21) + "-" + std::to_string(hash);
}

HostFolder::HostFolder(const std::string& folder, const std::string& run_id)
    : path_(folder + "/tprun-" + file_name_of(run_id)) {
  // The folder itself is made too, as torchrun's users give the name of a file to be; not what leads there.
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) throw failure(folder, "cannot be made");
  if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) throw failure(path_, "cannot be made");
  struct stat info {};
  if (::lstat(path_.c_str(), &info) != 0) throw failure(path_, "cannot be read");
  if (!S_ISDIR(info.st_mode)) throw DistStoreError(path_ + ": is not a folder");
  if (info.st_uid != ::geteuid()) {
    throw DistStoreError(path_ + ": is another user's; choose another folder or --rdzv-id");
  }
}

HostFolder::~HostFolder() {
  if (claimed_ == 0) return;
  try {
    for (const auto epoch : epochs()) {
      if (epoch <= claimed_) ::unlink(file_of(epoch).c_str());
    }
  } catch (const DistStoreError&) {
    // The folder is gone already.
  }
  ::rmdir(path_.c_str());  // Unless a successor has left word there.
}

std::optional<HostFolder::Entry> HostFolder::newest() const {
  const auto all = epochs();
  if (all.empty()) return std::nullopt;
  Entry entry;
  entry.epoch = all.back();
  const std::string path = file_of(entry.epoch);
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && (errno == ENOENT || errno == ESTALE)) return std::nullopt;  // Gone since it was listed.
  if (!fd) throw failure(path, "cannot be read");
  std::string text(kMaxRecordBytes, '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0 && errno == ESTALE) return std::nullopt;
  if (got < 0) throw failure(path, "cannot be read");
  text.resize(static_cast<std::size_t>(got));
  auto record = parse_host_record(text);
  if (!record) throw DistStoreError(path + ": is no record of a host; remove it");
  entry.record = std::move(*record);
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) {
    entry.is_locked = false;
  } else if (errno == EWOULDBLOCK) {
    entry.is_locked = true;
  }
  return entry;
}

bool HostFolder::try_claim(std::uint64_t epoch, const HostRecord& record) {
  const std::string draft = path_ + "/" + random_name();
  base::UniqueFd fd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) throw failure(draft, "cannot be made");
  try {
    write_whole(fd.get(), draft, to_text(record));
  } catch (...) {
    ::unlink(draft.c_str());
    throw;
  }
  // Locked before it can be seen. Where locks do not work, processes and connections have to tell.
  ::flock(fd.get(), LOCK_EX | LOCK_NB);
  const std::string path = file_of(epoch);
  const bool is_linked = ::link(draft.c_str(), path.c_str()) == 0;
  const int link_error = errno;
  // NFS may lose the answer to a link that worked: the number of links tells.
  struct stat info {};
  const bool is_ours = is_linked || (::fstat(fd.get(), &info) == 0 && info.st_nlink == 2);
  ::unlink(draft.c_str());
  errno = link_error;
  if (!is_ours && link_error != EEXIST) throw failure(path, "cannot be made");
  if (!is_ours) return false;
  const auto all = epochs();
  if (all.back() > epoch) {  // Somebody went further at the same time.
    ::unlink(path.c_str());
    return false;
  }
  for (const auto older : all) {
    if (older < epoch) ::unlink(file_of(older).c_str());
  }
  claimed_ = epoch;
  lock_ = std::move(fd);
  return true;
}

std::string HostFolder::file_of(std::uint64_t epoch) const {
  return path_ + "/" + std::string(kPrefix) + std::to_string(epoch);
}

std::vector<std::uint64_t> HostFolder::epochs() const {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path_.c_str()), &::closedir);
  if (!folder) throw failure(path_, "cannot be read");
  std::vector<std::uint64_t> found;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (const auto epoch = epoch_of(entry->d_name)) found.push_back(*epoch);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace tensorplay::rendezvous
