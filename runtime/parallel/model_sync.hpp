/// The same model on all ranks: verified, and broadcast.
#pragma once

#include "tensorplay/distributed/init.hpp"
#include "tensorplay/nn/parallel/distributed_data_parallel.hpp"

#include <string>
#include <vector>

namespace tensorplay::nn::parallel {

/// Throws DistError on every rank when some rank's trainable parameters differ from rank 0's in number, name, shape or
/// dtype; the text names the first rank and its first parameter that differ. One small all_gather when all agree.
void check_same_model(const Model& model, const distributed::Group& group);

/// Every rank's tensors become group rank `source`'s, in broadcasts of up to `chunk_bytes` for small ones together.
void broadcast_coalesced(const std::vector<Tensor>& tensors, int source, const distributed::Group& group,
                         std::size_t chunk_bytes = std::size_t{250} * 1024 * 1024);

}  // namespace tensorplay::nn::parallel
