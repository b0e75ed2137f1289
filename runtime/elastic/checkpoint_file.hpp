/// A checkpoint as a file: a header of lines, the elements of each tensor, and a checksum of all before it.
///
///     tensorplay-checkpoint 1
///     config seed=1
///     step 100
///     tensor float32 2 40 30 layer0.weight
///     (an empty line, the elements one tensor after the other, 8 bytes of checksum)
///
/// Thread rules: pure but for the file.
#pragma once

#include "tensorplay/distributed/checkpoint.hpp"

#include <filesystem>
#include <stdexcept>
#include <string>

namespace tensorplay::distributed::elastic {

struct DamagedFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Writes `path` whole or not at all, flushed to the disk.
void write_checkpoint(const std::filesystem::path& path, const CheckpointFolder::Config& config, std::int64_t step,
                      const std::vector<NamedTensor>& tensors);

/// DamagedFile when it is not what was written; InvalidArgument when `expected` differs from its configuration.
Checkpoint read_checkpoint(const std::filesystem::path& path, const CheckpointFolder::Config& expected);

}  // namespace tensorplay::distributed::elastic
