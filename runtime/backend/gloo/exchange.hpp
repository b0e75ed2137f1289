/// The collectives over a mesh that only move bytes, each in one step: everybody sends directly to whom it concerns.
///
/// Thread rules: one operation of a mesh at a time. All ranks call the same function; what one sends to another is as
/// long as the other expects. Errors: DistBackendError, as Step has it.
#pragma once

#include "runtime/backend/gloo/step.hpp"

#include <cstddef>
#include <span>

namespace tensorplay::distributed {

/// Memory of one rank's contribution.
struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// outputs[r] becomes rank r's input.
void run_all_gather(Operation& operation, std::span<const Block> outputs, const Block& input);

/// The root's outputs[r] becomes rank r's input; elsewhere `outputs` is empty.
void run_gather(Operation& operation, std::span<const Block> outputs, const Block& input, int root);

/// `output` becomes the root's inputs[own rank]; elsewhere `inputs` is empty.
void run_scatter(Operation& operation, const Block& output, std::span<const Block> inputs, int root);

/// outputs[r] becomes rank r's inputs[own rank].
void run_all_to_all(Operation& operation, std::span<const Block> outputs, std::span<const Block> inputs);

}  // namespace tensorplay::distributed
