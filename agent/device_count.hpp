/// Counts the devices that a framework would see, without CUDA, HIP or Level Zero: from the driver's files and, where
/// it is there, NVIDIA's management library; narrowed by the variables the frameworks themselves honour. Cores over
/// Machine.
#pragma once

#include "agent/environment_view.hpp"
#include "agent/machine.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::agent {

/// The entries of CUDA_VISIBLE_DEVICES and its like, trimmed. No entries for an empty value.
std::vector<std::string_view> visible_entries(std::string_view list);

/// The GPUs a CUDA program would see, in its order, each by its PCI address ("" when unknown).
///
/// As CUDA reads the list: indices, or UUIDs ("GPU-", "MIG-") that may be cut short while they name one device; the
/// first entry that names none ends the list, a repeated one empties it. A process can use one MIG instance only, so
/// of several the first counts; `one_each` (every worker gets one entry of its own) counts them all.
std::vector<std::string> visible_cuda_devices(const EnvironmentView& environment, const Machine& machine,
                                              bool one_each);

/// The GPUs a HIP program would see: those of the kfd topology, narrowed by ROCR_VISIBLE_DEVICES, then by
/// HIP_VISIBLE_DEVICES (or CUDA_VISIBLE_DEVICES, which HIP takes too).
std::vector<std::string> visible_hip_devices(const EnvironmentView& environment, const Machine& machine);

/// Intel GPUs under /sys/class/drm, narrowed by ZE_AFFINITY_MASK. One built into the processor counts only where it is
/// asked for and there is no other, as torch has it.
std::vector<std::string> visible_xpu_devices(const EnvironmentView& environment, const Machine& machine,
                                             bool with_integrated);

/// Of the first kind that is there: CUDA, HIP, then XPU.
std::vector<std::string> visible_devices(const EnvironmentView& environment, const Machine& machine, bool one_each);

}  // namespace tensorplay::agent
