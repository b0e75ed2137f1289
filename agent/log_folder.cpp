#include "agent/log_folder.hpp"

#include "runtime/base/environment.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>
#include <vector>

#include <sys/random.h>
#include <sys/stat.h>

namespace tensorplay::agent {
namespace {

std::string temporary_folder() {
  const auto value = base::env_value("TMPDIR");
  return value && !value->empty() ? *value : "/tmp";
}

std::string random_name() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz012345";
  std::array<unsigned char, 8> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) bytes.fill(0);
  std::string name;
  for (const unsigned char byte : bytes) name += kLetters[byte % kLetters.size()];
  return name;
}

/// In memory where there is such a place: on a disk, making and removing a folder may cost more than starting a worker.
std::vector<std::string> private_parents() {
  const auto chosen = base::env_value("TMPDIR");
  std::vector<std::string> parents{"/dev/shm", "/tmp"};
  if (chosen && !chosen->empty()) parents.insert(parents.begin(), *chosen);
  return parents;
}

std::string& chosen_name() {
  static std::string name;
  return name;
}

/// Empty when no folder can be made anywhere.
std::string make_private_folder() {
  if (chosen_name().empty()) ErrorFolder::choose_name();
  for (const std::string& parent : private_parents()) {
    std::string path = parent + "/" + chosen_name();
    if (::mkdir(path.c_str(), 0700) == 0) return path;
  }
  return {};
}

[[noreturn]] void fail(const std::string& path, int error) {
  throw distributed::DistError("log folder " + path + ": " + std::strerror(error));
}

/// A log folder that was asked for, with all above it.
void make_parent(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) fail(path, error ? error.value() : ENOTDIR);
}

/// Makes one folder; one that is there is as good.
void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST) return;
  fail(path, errno);
}

/// A run id is one name in a folder, whatever it is made of.
std::string as_file_name(std::string text) {
  for (char& c : text) {
    if (c == '/' || static_cast<unsigned char>(c) < 0x20) c = '_';
  }
  if (text.size() > 200) text.resize(200);
  return text;
}

}  // namespace

void check_log_parent(const std::string& log_dir) {
  const std::string parent = log_dir.empty() ? temporary_folder() : log_dir;
  if (!log_dir.empty()) make_parent(parent);
  std::string probe = parent + "/.tprun_XXXXXX";
  if (::mkdtemp(probe.data()) == nullptr) fail(parent, errno);
  ::rmdir(probe.c_str());
}

void LogFolder::make_run() {
  std::string parent = log_dir_;
  if (parent.empty()) {
    parent = temporary_folder() + "/tprun_logs_XXXXXX";
    if (::mkdtemp(parent.data()) == nullptr) fail(parent, errno);
  } else {
    make_parent(parent);
  }
  while (parent.size() > 1 && parent.ends_with('/')) parent.pop_back();
  for (;;) {
    const std::string path = parent + "/" + as_file_name(run_id_) + "_" + random_name();
    if (::mkdir(path.c_str(), 0777) == 0) {
      run_ = path;
      return;
    }
    if (errno != EEXIST) fail(path, errno);
  }
}

const std::string& LogFolder::attempt(int round) {
  if (run_.empty()) make_run();
  if (attempt_round_ != round) {
    attempt_ = run_ + "/attempt_" + std::to_string(round);
    make_folder(attempt_);
    attempt_round_ = round;
  }
  return attempt_;
}

std::string LogFolder::worker(int round, int local_rank) {
  std::string path = attempt(round) + "/" + std::to_string(local_rank);
  make_folder(path);
  return path;
}

ErrorFolder::~ErrorFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void ErrorFolder::choose_name() {
  chosen_name() = "tprun_" + std::to_string(::getpid()) + "_" + random_name();
}

void ErrorFolder::remove_chosen() {
  if (chosen_name().empty()) return;
  std::error_code ignored;
  for (const std::string& parent : private_parents()) {
    std::filesystem::remove_all(parent + "/" + chosen_name(), ignored);
  }
}

std::string ErrorFolder::file(int round, int local_rank) {
  if (has_failed_) return {};
  if (path_.empty()) {
    path_ = make_private_folder();
    has_failed_ = path_.empty();
    if (has_failed_) return {};
  }
  return path_ + "/attempt_" + std::to_string(round) + "_" + std::to_string(local_rank) + "_error.json";
}

}  // namespace tensorplay::agent
