#include "agent/worker_cgroup.hpp"

#include "agent/entry_state.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

namespace tensorplay::agent {

namespace {

/// Where cgroup v2 is mounted, empty when it is not: alone, or beside v1.
std::string mount_point() {
  for (const char* path : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    struct statfs info {};
    if (statfs(path, &info) == 0 && info.f_type == CGROUP2_SUPER_MAGIC) return path;
  }
  return {};
}

/// The v2 path below the mount point, such as "/user.slice/...", in the text of a process's cgroup file; empty when
/// there is none.
std::string v2_path(const std::string& cgroups) {
  std::istringstream lines(cgroups);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return {};
}

std::string cgroups_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cgroup");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool has_mark(const std::string& path, const char* attribute) {
  char value[2] = {};
  return getxattr(path.c_str(), attribute, value, sizeof value) == 1 && value[0] == '1';
}

bool is_delegated(const std::string& path) {
  if (has_mark(path, "user.delegate") || has_mark(path, "trusted.delegate")) return true;
  struct stat info {};
  return geteuid() != 0 && stat(path.c_str(), &info) == 0 && info.st_uid == geteuid() &&
         access((path + "/cgroup.procs").c_str(), W_OK) == 0;
}

/// The full path of our own cgroup; empty when there is no v2 hierarchy.
std::string own_folder() {
  const std::string mount = mount_point();
  if (mount.empty()) return {};
  const std::string own = v2_path(own_cgroups());
  if (own.empty()) return {};
  return own == "/" ? mount : mount + own;
}

std::string folder_of_agent(const std::string& own, pid_t agent) {
  return own + "/tprun-" + std::to_string(agent);
}

bool write_one(const std::string& path) {
  const base::UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), "1", 1) == 1;
}

}  // namespace

WorkerCgroup::~WorkerCgroup() {
  rmdir(path_.c_str());
}

bool WorkerCgroup::kill() const {
  return write_one(path_ + "/cgroup.kill");
}

bool WorkerCgroup::contains(pid_t pid) const {
  const std::string theirs = v2_path(cgroups_of(pid));
  if (theirs.empty()) return false;
  const std::size_t at = path_.rfind("/tprun-");
  const std::string ours = path_.substr(at);
  const std::size_t found = theirs.find(ours);
  if (found == std::string::npos) return false;
  const std::size_t end = found + ours.size();
  return end == theirs.size() || theirs[end] == '/';
}

std::unique_ptr<CgroupTree> CgroupTree::make() {
  const std::string own = own_folder();
  if (own.empty() || !is_delegated(own)) return nullptr;
  const std::string path = folder_of_agent(own, getpid());
  if (mkdir(path.c_str(), 0755) != 0) return nullptr;
  std::unique_ptr<CgroupTree> tree(new CgroupTree(path));
  if (access((path + "/cgroup.kill").c_str(), W_OK) != 0) return nullptr;
  return tree;
}

CgroupTree::~CgroupTree() {
  rmdir(path_.c_str());
}

std::unique_ptr<WorkerCgroup> CgroupTree::make_worker_cgroup(int round, int local_rank) {
  const std::string path = path_ + "/round" + std::to_string(round) + "-rank" + std::to_string(local_rank);
  if (mkdir(path.c_str(), 0755) != 0) return nullptr;
  base::UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) {
    rmdir(path.c_str());
    return nullptr;
  }
  return std::make_unique<WorkerCgroup>(path, std::move(folder));
}

void CgroupTree::kill_remains_of(pid_t agent) {
  const std::string own = own_folder();
  if (!own.empty()) write_one(folder_of_agent(own, agent) + "/cgroup.kill");
}

void CgroupTree::remove_remains_of(pid_t agent) {
  const std::string own = own_folder();
  if (own.empty()) return;
  const std::string path = folder_of_agent(own, agent);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) return;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') rmdir((path + "/" + entry->d_name).c_str());
  }
  rmdir(path.c_str());
}

}  // namespace tensorplay::agent
