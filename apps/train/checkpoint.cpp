#include "apps/train/checkpoint.hpp"

#include "apps/train/hashing.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

namespace train {
namespace {

constexpr std::string_view kMagic = "train-checkpoint 1\n";
constexpr std::size_t kKept = 2;
constexpr std::string_view kSuffix = ".ckpt";

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw std::runtime_error(path.string() + ": " + what + ": " + std::strerror(errno));
}

/// A file: magic, the configuration as lines "name=value", an empty line, "step count", the floats, and a checksum of
/// all before it.
std::string header(const CheckpointFolder::Config& config, int step, std::size_t count) {
  std::string text(kMagic);
  for (const auto& [name, value] : config) text += name + "=" + value + "\n";
  text += "\n" + std::to_string(step) + " " + std::to_string(count) + "\n";
  return text;
}

struct DamagedFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Checkpoint parse(const std::string& content, const CheckpointFolder::Config& expected,
                 const std::filesystem::path& path) {
  std::uint64_t checksum = 0;
  if (content.size() < kMagic.size() + sizeof(checksum) || !content.starts_with(kMagic)) {
    throw DamagedFile("it is no checkpoint");
  }
  const std::size_t end = content.size() - sizeof(checksum);
  std::memcpy(&checksum, content.data() + end, sizeof(checksum));
  if (checksum != hash_bytes(content.data(), end)) throw DamagedFile("its checksum is wrong");

  std::istringstream text(content.substr(kMagic.size(), end - kMagic.size()));
  CheckpointFolder::Config config;
  for (std::string line; std::getline(text, line) && !line.empty();) {
    const auto equals = line.find('=');
    config[line.substr(0, equals)] = equals == std::string::npos ? "" : line.substr(equals + 1);
  }
  for (const auto& [name, value] : expected) {
    if (config[name] == value) continue;
    throw std::runtime_error(path.string() + " was made with " + name + "=" + config[name] + ", not " + value +
                             "; give another --checkpoint-dir");
  }
  Checkpoint checkpoint;
  std::size_t count = 0;
  text >> checkpoint.step >> count;
  text.get();
  checkpoint.values.resize(count);
  if (!text.read(reinterpret_cast<char*>(checkpoint.values.data()),
                 static_cast<std::streamsize>(count * sizeof(float)))) {
    throw DamagedFile("it is too short");
  }
  return checkpoint;
}

/// Makes names in a folder last over a power cut, like the data.
void flush_folder(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

/// When this process began, in the kernel's ticks: with the pid it names a process for good.
std::string start_time_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  return field;
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::filesystem::path path, Config config, bool is_temporary)
    : path_(std::move(path)), config_(std::move(config)), is_temporary_(is_temporary) {
  std::filesystem::create_directories(path_);
  if (is_temporary_) std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
}

std::filesystem::path CheckpointFolder::file_of(int step) const {
  char name[32];
  std::snprintf(name, sizeof(name), "step-%09d", step);
  return path_ / (name + std::string(kSuffix));
}

std::vector<int> CheckpointFolder::steps() const {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    int step = 0;
    if (entry.path().extension() != kSuffix) continue;
    if (std::sscanf(entry.path().filename().c_str(), "step-%d", &step) == 1) found.push_back(step);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::optional<Checkpoint> CheckpointFolder::load() const {
  for (const int step : steps()) {
    const auto path = file_of(step);
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content;
    content << file.rdbuf();
    try {
      return parse(content.str(), config_, path);
    } catch (const DamagedFile& damage) {
      std::cerr << "train: " << path.string() << " is passed over: " << damage.what() << std::endl;
    }
  }
  return std::nullopt;
}

void CheckpointFolder::save(int step, std::span<const std::span<float>> parts) const {
  std::size_t count = 0;
  for (const auto& part : parts) count += part.size();
  std::string content = header(config_, step, count);
  for (const auto& part : parts) content.append(reinterpret_cast<const char*>(part.data()), part.size_bytes());
  const std::uint64_t checksum = hash_bytes(content.data(), content.size());
  content.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));

  const auto path = file_of(step);
  const auto unfinished = path.string() + ".tmp";
  std::FILE* file = std::fopen(unfinished.c_str(), "wbe");
  if (file == nullptr) fail(unfinished, "cannot be made");
  const bool is_written = std::fwrite(content.data(), 1, content.size(), file) == content.size() &&
                          std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  if (std::fclose(file) != 0 || !is_written) fail(unfinished, "cannot be written");
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) fail(path, "cannot be put in place");
  flush_folder(path_);

  const auto all = steps();
  for (std::size_t i = kKept; i < all.size(); ++i) std::filesystem::remove(file_of(all[i]));
}

void CheckpointFolder::remove() const noexcept {
  std::error_code ignored;
  if (is_temporary_) std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path temporary_checkpoint_path() {
  const int agent = ::getppid();
  return std::filesystem::temp_directory_path() /
         ("train-" + std::to_string(::getuid()) + "-" + std::to_string(agent) + "-" + start_time_of(agent));
}

}  // namespace train
