/// NVIDIA's management library (libnvidia-ml), loaded only when GPUs must be counted. It needs no CUDA and makes no
/// context on a GPU.
#pragma once

#include "agent/machine.hpp"

#include <optional>
#include <vector>

namespace tensorplay::agent {

/// The GPUs in PCI order; nullopt when the library is not there or does not work (no driver).
/// Blocks while the driver starts: up to some seconds where no persistence daemon runs.
std::optional<std::vector<NvidiaDevice>> list_nvidia_devices();

}  // namespace tensorplay::agent
