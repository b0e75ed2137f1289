#include "tensorplay/distributed/checkpoint.hpp"

#include "runtime/base/log.hpp"
#include "runtime/elastic/checkpoint_file.hpp"
#include "tensorplay/distributed/collectives.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace tensorplay::distributed::elastic {
namespace {

constexpr std::string_view kSuffix = ".ckpt";

/// When a process began, in the kernel's ticks: with the pid it names a process for good.
std::string start_time_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  return field;
}

/// Fills the tensors from the checkpoint; what is wrong with it, or nothing.
std::string take_over(const Checkpoint& checkpoint, const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, value] : tensors) {
    const auto found = checkpoint.tensors.find(name);
    if (found == checkpoint.tensors.end()) return "has no \"" + name + "\"";
    if (found->second.shape() != value.shape() || found->second.dtype() != value.dtype()) {
      return "has \"" + name + "\" as " + std::string(to_string(found->second.dtype())) + " " +
             tensorplay::to_string(found->second.shape()) + ", not " + std::string(to_string(value.dtype())) + " " +
             tensorplay::to_string(value.shape());
    }
    Tensor(value).copy_(found->second);
  }
  return "";
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::filesystem::path path, Options options)
    : path_(std::move(path)), options_(std::move(options)) {
  if (options_.kept < 1) throw InvalidArgument("CheckpointFolder: at least one file has to be kept");
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (!error && options_.is_temporary) {
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, error);
  }
  if (error) throw DistError(path_.string() + ": cannot be made: " + error.message());
}

std::filesystem::path CheckpointFolder::file_of(std::int64_t step) const {
  char name[40];
  std::snprintf(name, sizeof(name), "step-%09lld", static_cast<long long>(step));
  return path_ / (name + std::string(kSuffix));
}

std::vector<std::int64_t> CheckpointFolder::steps() const {
  std::vector<std::int64_t> found;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    long long step = 0;
    if (entry.path().extension() != kSuffix) continue;
    if (std::sscanf(entry.path().filename().c_str(), "step-%lld", &step) == 1) found.push_back(step);
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::optional<Checkpoint> CheckpointFolder::load() const {
  for (const auto step : steps()) {
    const auto path = file_of(step);
    try {
      return read_checkpoint(path, options_.config);
    } catch (const DamagedFile& damage) {
      base::log::warning(path.string() + " is passed over: " + damage.what());
    }
  }
  return std::nullopt;
}

void CheckpointFolder::save(std::int64_t step, const std::vector<NamedTensor>& tensors) const {
  write_checkpoint(file_of(step), options_.config, step, tensors);
  const auto all = steps();
  std::error_code ignored;
  for (std::size_t i = static_cast<std::size_t>(options_.kept); i < all.size(); ++i) {
    std::filesystem::remove(file_of(all[i]), ignored);
  }
}

void CheckpointFolder::remove() const noexcept {
  std::error_code ignored;
  if (options_.is_temporary) std::filesystem::remove_all(path_, ignored);
}

std::int64_t restore(const CheckpointFolder* folder, const std::vector<NamedTensor>& tensors, const Group& group) {
  const Group resolved = group ? group : get_default_group();
  // Steps that are done, and whether the checkpoint was of no use.
  Tensor said = tensor<std::int64_t>({0, 0});
  std::string trouble;
  std::exception_ptr error;
  if (folder != nullptr && resolved->rank() == 0) {
    try {
      if (const auto checkpoint = folder->load()) {
        said.data<std::int64_t>()[0] = checkpoint->step;
        trouble = take_over(*checkpoint, tensors);
        if (!trouble.empty()) trouble = folder->path().string() + ": the newest checkpoint " + trouble;
      }
    } catch (...) {
      error = std::current_exception();
    }
    said.data<std::int64_t>()[1] = error || !trouble.empty() ? 1 : 0;
  }
  broadcast(said, {.group = resolved, .group_src = 0});
  if (said.data<std::int64_t>()[1] != 0) {
    if (error) std::rethrow_exception(error);
    throw DistError(trouble.empty() ? "restore: rank 0 could not use its checkpoint" : trouble);
  }
  for (const auto& [name, value] : tensors) broadcast(value, {.group = resolved, .group_src = 0});
  return said.data<std::int64_t>()[0];
}

std::filesystem::path temporary_checkpoint_path(const std::string& program) {
  const int agent = ::getppid();
  return std::filesystem::temp_directory_path() /
         (program + "-" + std::to_string(::getuid()) + "-" + std::to_string(agent) + "-" + start_time_of(agent));
}

}  // namespace tensorplay::distributed::elastic
