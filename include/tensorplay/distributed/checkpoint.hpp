#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/init.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::distributed::elastic {

/// A tensor of a checkpoint, by the name it is found again by.
struct NamedTensor {
  std::string name;
  Tensor value;
};

/// A moment of a training: after `step` steps.
struct Checkpoint {
  std::int64_t step = 0;
  std::map<std::string, Tensor> tensors = {};
};

struct CheckpointFolderOptions {
  std::map<std::string, std::string> config = {};  ///< What has to agree for training to go on; no newlines.
  int kept = 2;                                    ///< The newest files that stay.
  bool is_temporary = false;                       ///< For the owner alone, and remove() deletes it.
};

/// Checkpoints in a folder, the newest few kept.
///
/// A file is written beside its name, flushed to the disk and renamed, so whoever is killed at any moment leaves whole
/// files behind. A file that is damaged all the same is passed over, with a warning, for the one before it.
/// Thread rules: one process writes (rank 0), any number reads.
/// Errors: DistError with path and reason; InvalidArgument when a checkpoint was made with another configuration.
class TP_API CheckpointFolder {
 public:
  using Options = CheckpointFolderOptions;
  using Config = std::map<std::string, std::string>;

  /// Makes the folder where it is missing.
  explicit CheckpointFolder(std::filesystem::path path, Options options = {});

  /// The newest whole checkpoint; nullopt when there is none.
  std::optional<Checkpoint> load() const;

  /// Tensors on the CPU, of any layout.
  void save(std::int64_t step, const std::vector<NamedTensor>& tensors) const;

  /// Deletes a temporary folder; for the end of a run that went well.
  void remove() const noexcept;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path file_of(std::int64_t step) const;
  std::vector<std::int64_t> steps() const;  // Newest first.

  std::filesystem::path path_;
  Options options_;
};

/// All ranks of the group go on from what group rank 0 has: `folder`'s newest checkpoint (null: there is none; the
/// others give null), else the tensors as they are. Returns the steps that are done. DistError on every rank when the
/// checkpoint lacks a tensor or has another shape of it.
TP_API std::int64_t restore(const CheckpointFolder* folder, const std::vector<NamedTensor>& tensors,
                            const Group& group = {});

/// A folder name for this run alone, the same in every attempt of it: after the agent's process, which outlives the
/// attempts and no other run.
TP_API std::filesystem::path temporary_checkpoint_path(const std::string& program);

}  // namespace tensorplay::distributed::elastic
