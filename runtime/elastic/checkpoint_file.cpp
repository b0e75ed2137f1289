#include "runtime/elastic/checkpoint_file.hpp"

#include "runtime/base/fd.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <unistd.h>
#include <utility>

namespace tensorplay::distributed::elastic {
namespace {

constexpr std::string_view kMagic = "tensorplay-checkpoint 1";

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw DistError(path.string() + ": " + what + ": " + std::strerror(errno));
}

/// FNV-1a over 8 bytes at a time.
class Checksum {
 public:
  void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (; size >= 8; size -= 8, bytes += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes, 8);
      mix(word);
    }
    for (; size > 0; --size) mix(*bytes++);
  }
  std::uint64_t value() const { return value_; }

 private:
  void mix(std::uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3ULL ^ (value_ >> 29); }
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

std::string header(const CheckpointFolder::Config& config, std::int64_t step, const std::vector<NamedTensor>& tensors) {
  std::string text = std::string(kMagic) + "\n";
  for (const auto& [name, value] : config) text += "config " + name + "=" + value + "\n";
  text += "step " + std::to_string(step) + "\n";
  for (const auto& [name, value] : tensors) {
    text += "tensor " + std::string(to_string(value.dtype())) + " " + std::to_string(value.dim());
    for (const auto size : value.shape()) text += " " + std::to_string(size);
    text += " " + name + "\n";
  }
  return text + "\n";
}

/// Makes names in a folder last over a power cut, like the data.
void flush_folder(const std::filesystem::path& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) ::fsync(fd.get());
}

class File {
 public:
  explicit File(std::filesystem::path path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wbe")) {
    if (file_ == nullptr) fail(path_, "cannot be made");
  }
  ~File() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    ::unlink(path_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const void* data, std::size_t size) {
    if (size > 0 && std::fwrite(data, 1, size, file_) != size) fail(path_, "cannot be written");
  }
  void put_in_place(const std::filesystem::path& final_path) {
    if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail(path_, "cannot be written");
    std::FILE* const file = std::exchange(file_, nullptr);
    if (std::fclose(file) != 0 || std::rename(path_.c_str(), final_path.c_str()) != 0) {
      const int error = errno;
      ::unlink(path_.c_str());
      errno = error;
      fail(final_path, "cannot be put in place");
    }
  }

 private:
  std::filesystem::path path_;
  std::FILE* file_;
};

/// The lines up to the empty one, and where the elements begin.
std::vector<std::string> header_lines(const std::string& content, std::size_t end, std::size_t& elements) {
  std::vector<std::string> lines;
  std::size_t at = 0;
  while (true) {
    const auto newline = content.find('\n', at);
    if (newline == std::string::npos || newline >= end) throw DamagedFile("its header has no end");
    if (newline == at) break;
    lines.push_back(content.substr(at, newline - at));
    at = newline + 1;
  }
  elements = at + 1;
  return lines;
}

void check_config(const CheckpointFolder::Config& found, const CheckpointFolder::Config& expected,
                  const std::filesystem::path& path) {
  for (const auto& [name, value] : expected) {
    const auto there = found.find(name);
    if (there != found.end() && there->second == value) continue;
    throw InvalidArgument(path.string() + " was made with " + name + "=" + (there == found.end() ? "" : there->second) +
                          ", not " + value + "; give another folder");
  }
}

NamedTensor empty_tensor(std::istringstream& line) {
  std::string dtype;
  std::size_t dimensions = 0;
  line >> dtype >> dimensions;
  if (!line || dimensions > 64) throw DamagedFile("its header is damaged");
  Shape shape(dimensions);
  for (auto& size : shape) line >> size;
  line.get();
  NamedTensor result;
  if (!std::getline(line, result.name)) throw DamagedFile("its header is damaged");
  result.value = empty(shape, parse_dtype(dtype));
  return result;
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const CheckpointFolder::Config& config, std::int64_t step,
                      const std::vector<NamedTensor>& tensors) {
  File file(path.string() + ".tmp");
  Checksum checksum;
  const auto write = [&](const void* data, std::size_t size) {
    file.write(data, size);
    checksum.add(data, size);
  };
  const std::string head = header(config, step, tensors);
  write(head.data(), head.size());
  for (const auto& [name, value] : tensors) {
    const Tensor packed = value.contiguous();
    write(packed.data(), packed.nbytes());
  }
  const std::uint64_t sum = checksum.value();
  file.write(&sum, sizeof sum);
  file.put_in_place(path);
  flush_folder(path.parent_path());
}

Checkpoint read_checkpoint(const std::filesystem::path& path, const CheckpointFolder::Config& expected) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string content = std::move(text).str();
  std::uint64_t sum = 0;
  if (content.size() < kMagic.size() + sizeof sum || !content.starts_with(kMagic)) {
    throw DamagedFile("it is no checkpoint");
  }
  const std::size_t end = content.size() - sizeof sum;
  std::memcpy(&sum, content.data() + end, sizeof sum);

  std::size_t at = 0;
  CheckpointFolder::Config config;
  Checkpoint checkpoint;
  std::vector<NamedTensor> tensors;
  const auto lines = header_lines(content, end, at);
  Checksum checksum;
  checksum.add(content.data(), at);
  for (const auto& line : lines) {
    if (line.starts_with("config ")) {
      const auto equals = line.find('=');
      config[line.substr(7, equals - 7)] = equals == std::string::npos ? "" : line.substr(equals + 1);
    } else if (line.starts_with("step ")) {
      checkpoint.step = std::strtoll(line.c_str() + 5, nullptr, 10);
    } else if (line.starts_with("tensor ")) {
      std::istringstream words(line.substr(7));
      try {
        tensors.push_back(empty_tensor(words));
      } catch (const InvalidArgument& error) {
        throw DamagedFile(error.what());
      }
    }
  }
  for (auto& [name, value] : tensors) {
    if (value.nbytes() > end - at) throw DamagedFile("it is too short");
    if (value.nbytes() > 0) std::memcpy(value.data(), content.data() + at, value.nbytes());
    checksum.add(content.data() + at, value.nbytes());
    at += value.nbytes();
    checkpoint.tensors[name] = value;
  }
  if (at != end || checksum.value() != sum) throw DamagedFile("its checksum is wrong");
  check_config(config, expected, path);
  return checkpoint;
}

}  // namespace tensorplay::distributed::elastic
