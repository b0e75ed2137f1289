#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace train {

/// A moment of the training: after `step` steps.
struct Checkpoint {
  int step = 0;
  std::vector<float> values;  ///< Parameters and optimiser state.
};

/// Checkpoints in a folder, the newest two kept.
///
/// A file is written beside its name, flushed to the disk and renamed, so whoever is killed at any moment leaves whole
/// files behind. A file that is damaged all the same is passed over, with a line on stderr, for the one before it.
class CheckpointFolder {
 public:
  using Config = std::map<std::string, std::string>;  ///< What has to agree for training to go on, by name.

  /// Makes the folder where it is missing. `is_temporary`: remove() deletes it.
  CheckpointFolder(std::filesystem::path path, Config config, bool is_temporary);

  /// The newest whole checkpoint; nullopt when there is none. Throws std::runtime_error when one was made with another
  /// configuration.
  std::optional<Checkpoint> load() const;

  /// Throws std::runtime_error with the path and the reason.
  void save(int step, std::span<const std::span<float>> parts) const;

  /// Deletes a temporary folder; for the end of a run that went well.
  void remove() const noexcept;

 private:
  std::filesystem::path file_of(int step) const;
  std::vector<int> steps() const;  // Newest first.

  std::filesystem::path path_;
  Config config_;
  bool is_temporary_;
};

/// A folder for this run alone, the same in every attempt of it: it is named after the agent's process, which outlives
/// the attempts and no other run.
std::filesystem::path temporary_checkpoint_path();

}  // namespace train
