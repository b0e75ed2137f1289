#include "agent/process_tree.hpp"

#include "runtime/base/fd.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <memory>

#include <sys/wait.h>

namespace tensorplay::agent {

namespace {

/// The whole file, or nullopt when it cannot be opened or read.
std::optional<std::string> read_whole(const std::string& path) {
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(file.get(), buffer, sizeof buffer);
    if (got < 0) {
      if (errno == EINTR) continue;
      return std::nullopt;
    }
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

/// Names in a /proc folder that are numbers.
std::vector<pid_t> numeric_entries(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) return numbers;
  while (const dirent* entry = readdir(folder.get())) {
    char* end = nullptr;
    const long number = std::strtol(entry->d_name, &end, 10);
    if (number > 0 && *end == '\0') numbers.push_back(static_cast<pid_t>(number));
  }
  return numbers;
}

void append_pids(const std::string& text, std::vector<pid_t>& pids) {
  const char* at = text.c_str();
  for (;;) {
    char* end = nullptr;
    const long number = std::strtol(at, &end, 10);
    if (end == at) return;
    pids.push_back(static_cast<pid_t>(number));
    at = end;
  }
}

/// For kernels built without the children files.
std::vector<pid_t> children_by_scan(pid_t pid) {
  std::vector<pid_t> children;
  for (const pid_t candidate : numeric_entries("/proc")) {
    const auto stat = read_process_stat(candidate);
    if (stat && stat->parent == pid) children.push_back(candidate);
  }
  return children;
}

bool kernel_lists_children() {
  static const bool lists = access("/proc/thread-self/children", R_OK) == 0;
  return lists;
}

}  // namespace

std::optional<ProcessStat> read_process_stat(pid_t pid) {
  const auto text = read_whole("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::nullopt;
  // The name stands in parentheses and may itself contain anything, parentheses too.
  const std::size_t open_at = text->find('(');
  const std::size_t close_at = text->rfind(')');
  if (open_at == std::string::npos || close_at == std::string::npos || close_at < open_at) return std::nullopt;
  ProcessStat stat;
  stat.pid = pid;
  stat.name = text->substr(open_at + 1, close_at - open_at - 1);
  int parent = 0;
  int session = 0;
  unsigned long long start = 0;
  // Fields 3 state, 4 ppid, 5 pgrp, 6 session, 22 starttime.
  const int fields = std::sscanf(text->c_str() + close_at + 1,
                                 " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                                 &stat.state, &parent, &session, &start);
  if (fields != 4) return std::nullopt;
  stat.parent = parent;
  stat.session = session;
  stat.start_ticks = start;
  return stat;
}

std::vector<pid_t> children_of(pid_t pid) {
  if (!kernel_lists_children()) return children_by_scan(pid);
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  std::vector<pid_t> children;
  for (const pid_t thread : numeric_entries(tasks)) {
    if (const auto text = read_whole(tasks + "/" + std::to_string(thread) + "/children")) append_pids(*text, children);
  }
  return children;
}

std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> all = children_of(pid);
  for (std::size_t next = 0; next < all.size(); ++next) {
    const std::vector<pid_t> more = children_of(all[next]);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::optional<std::string> initial_environment_of(pid_t pid, std::string_view name) {
  const auto text = read_whole("/proc/" + std::to_string(pid) + "/environ");
  if (!text) return std::nullopt;
  const std::string_view all = *text;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\0', at), all.size());
    const std::string_view entry = all.substr(at, end - at);
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.substr(0, name.size()) == name) {
      return std::string(entry.substr(name.size() + 1));
    }
    at = end + 1;
  }
  return std::nullopt;
}

bool has_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

}  // namespace tensorplay::agent
