#include "runtime/backend/gloo/algorithms.hpp"

#include "runtime/tensor/fold.hpp"

#include <algorithm>

namespace tensorplay::distributed {
namespace {

/// Up to this size everybody sends everything to everybody: one step instead of two.
constexpr std::size_t kOneStepBytes = 16 * 1024;

/// What one rank folds at a time; bounds the scratch memory to this times the group's size.
constexpr std::size_t kPieceBytes = 1024 * 1024;

/// The part of `count` elements that belongs to each rank.
struct Split {
  std::size_t count;
  int parts;

  std::size_t begin(int part) const {
    const auto n = static_cast<std::size_t>(parts);
    const auto p = static_cast<std::size_t>(part);
    return p * (count / n) + std::min(p, count % n);
  }
  std::size_t size(int part) const { return begin(part + 1) - begin(part); }
};

/// Sends `mine(r)`, split.size(r) elements, to each rank r and folds what all ranks sent to this one, own contribution
/// included, into `out`.
template <typename Mine, typename Sizes>
void exchange_and_fold(Operation& operation, DType dtype, const ReduceOp& op, Mine mine, const Sizes& split, void* out,
                       Scratch& scratch) {
  const Mesh& mesh = operation.mesh;
  const std::size_t width = element_size(dtype);
  const std::size_t own = split.size(mesh.rank());
  std::byte* const arrived = scratch.take(own * width * static_cast<std::size_t>(mesh.size()));
  std::vector<const void*> sources(static_cast<std::size_t>(mesh.size()));
  {
    Step step(operation);
    for (int peer = 0; peer < mesh.size(); ++peer) {
      const auto p = static_cast<std::size_t>(peer);
      if (peer == mesh.rank()) {
        sources[p] = mine(peer);
        continue;
      }
      sources[p] = arrived + p * own * width;
      step.recv(peer, arrived + p * own * width, own * width);
    }
    for (int peer = 0; peer < mesh.size(); ++peer) {
      if (peer != mesh.rank()) step.send(peer, mine(peer), split.size(peer) * width);
    }
    step.wait();
  }
  fold(op, dtype, sources, out, own);
}

/// Everybody gets all of everybody's elements and folds them alone.
void all_reduce_in_one_step(Operation& operation, const Elements& elements, const ReduceOp& op, Scratch& scratch) {
  const Mesh& mesh = operation.mesh;
  const std::size_t bytes = elements.count * element_size(elements.dtype);
  std::byte* const arrived = scratch.take(bytes * static_cast<std::size_t>(mesh.size()));
  std::vector<Block> all(static_cast<std::size_t>(mesh.size()));
  for (std::size_t r = 0; r < all.size(); ++r) all[r] = {arrived + r * bytes, bytes};
  run_all_gather(operation, all, {elements.data, bytes});
  std::vector<const void*> sources;
  for (const auto& block : all) sources.push_back(block.data);
  fold(op, elements.dtype, sources, elements.data, elements.count);
}

/// Calls `run(offset, count)` for slices small enough for the scratch memory.
template <typename Run>
void for_each_slice(std::size_t count, std::size_t slice, Run run) {
  for (std::size_t offset = 0; offset < count; offset += slice) run(offset, std::min(slice, count - offset));
}

}  // namespace

std::byte* Scratch::take(std::size_t bytes) {
  if (memory_.size() < bytes) memory_.resize(bytes);
  return memory_.data();
}

void run_broadcast(Operation& operation, void* data, std::size_t bytes, int root) {
  // A binomial tree over ranks counted from the root: after step k the first 2^k ranks have the data.
  const Mesh& mesh = operation.mesh;
  const int size = mesh.size();
  const int position = (mesh.rank() - root + size) % size;
  const auto rank_at = [&](int place) { return (place + root) % size; };
  for (int reached = 1; reached < size; reached *= 2) {
    Step step(operation);
    if (position < reached && position + reached < size) step.send(rank_at(position + reached), data, bytes);
    if (position >= reached && position < 2 * reached) step.recv(rank_at(position - reached), data, bytes);
    step.wait();
  }
}

void run_all_reduce(Operation& operation, const Elements& elements, const ReduceOp& op, Scratch& scratch) {
  const Mesh& mesh = operation.mesh;
  const std::size_t width = element_size(elements.dtype);
  if (elements.count * width <= kOneStepBytes) return all_reduce_in_one_step(operation, elements, op, scratch);
  const std::size_t slice = kPieceBytes / width * static_cast<std::size_t>(mesh.size());
  for_each_slice(elements.count, slice, [&](std::size_t offset, std::size_t count) {
    auto* const base = static_cast<std::byte*>(elements.data) + offset * width;
    const Split split{count, mesh.size()};
    const auto part = [&](int rank) { return base + split.begin(rank) * width; };
    exchange_and_fold(operation, elements.dtype, op, part, split, part(mesh.rank()), scratch);
    Step step(operation);
    for (int peer = 0; peer < mesh.size(); ++peer) {
      if (peer != mesh.rank()) step.recv(peer, part(peer), split.size(peer) * width);
    }
    for (int peer = 0; peer < mesh.size(); ++peer) {
      if (peer != mesh.rank()) step.send(peer, part(mesh.rank()), split.size(mesh.rank()) * width);
    }
    step.wait();
  });
}

void run_reduce(Operation& operation, const Elements& elements, int root, const ReduceOp& op, Scratch& scratch) {
  const Mesh& mesh = operation.mesh;
  const std::size_t width = element_size(elements.dtype);
  const bool is_root = mesh.rank() == root;
  const std::size_t slice = kPieceBytes / width * static_cast<std::size_t>(mesh.size());
  std::vector<std::byte> folded;
  for_each_slice(elements.count, slice, [&](std::size_t offset, std::size_t count) {
    auto* const base = static_cast<std::byte*>(elements.data) + offset * width;
    const Split split{count, mesh.size()};
    const auto part = [&](int rank) { return base + split.begin(rank) * width; };
    const std::size_t own = split.size(mesh.rank()) * width;
    if (!is_root) folded.resize(own);
    exchange_and_fold(operation, elements.dtype, op, part, split, is_root ? part(root) : folded.data(), scratch);
    Step step(operation);
    for (int peer = 0; is_root && peer < mesh.size(); ++peer) {
      if (peer != root) step.recv(peer, part(peer), split.size(peer) * width);
    }
    if (!is_root) step.send(root, folded.data(), own);
    step.wait();
  });
}

void run_reduce_scatter(Operation& operation, const Elements& output, std::span<const Elements> inputs,
                        const ReduceOp& op, Scratch& scratch) {
  const std::size_t width = element_size(output.dtype);
  std::size_t longest = 0;
  for (const auto& input : inputs) longest = std::max(longest, input.count);
  const auto at = [](int rank) { return static_cast<std::size_t>(rank); };
  for_each_slice(longest, kPieceBytes / width, [&](std::size_t offset, std::size_t count) {
    struct Remaining {
      std::span<const Elements> inputs;
      std::size_t offset;
      std::size_t count;
      std::size_t size(int rank) const {
        const auto whole = inputs[static_cast<std::size_t>(rank)].count;
        return whole <= offset ? 0 : std::min(count, whole - offset);
      }
    };
    const Remaining split{inputs, offset, count};
    const auto part = [&](int rank) { return static_cast<const std::byte*>(inputs[at(rank)].data) + offset * width; };
    exchange_and_fold(operation, output.dtype, op, part, split, static_cast<std::byte*>(output.data) + offset * width,
                      scratch);
  });
}

void run_barrier(Operation& operation) {
  // Dissemination: in step k everybody tells the rank 2^k further on; after log2(n) steps all have heard of all.
  const Mesh& mesh = operation.mesh;
  const int size = mesh.size();
  for (int distance = 1; distance < size; distance *= 2) {
    char sent = 1;
    char received = 0;
    Step step(operation);
    step.recv((mesh.rank() - distance + size) % size, &received, 1);
    step.send((mesh.rank() + distance) % size, &sent, 1);
    step.wait();
  }
}

}  // namespace tensorplay::distributed
