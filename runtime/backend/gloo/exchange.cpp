#include "runtime/backend/gloo/exchange.hpp"

#include <cstring>

namespace tensorplay::distributed {
namespace {

const Block& of(std::span<const Block> blocks, int rank) {
  return blocks[static_cast<std::size_t>(rank)];
}

/// A rank's own contribution; the two may be the same memory.
void copy_own(const Block& to, const Block& from) {
  if (from.bytes > 0 && to.data != from.data) std::memmove(to.data, from.data, from.bytes);
}

}  // namespace

void run_all_gather(Operation& operation, std::span<const Block> outputs, const Block& input) {
  const Mesh& mesh = operation.mesh;
  Step step(operation);
  for (int peer = 0; peer < mesh.size(); ++peer) {
    if (peer != mesh.rank()) step.recv(peer, of(outputs, peer).data, of(outputs, peer).bytes);
  }
  for (int peer = 0; peer < mesh.size(); ++peer) {
    if (peer != mesh.rank()) step.send(peer, input.data, input.bytes);
  }
  copy_own(of(outputs, mesh.rank()), input);
  step.wait();
}

void run_gather(Operation& operation, std::span<const Block> outputs, const Block& input, int root) {
  const Mesh& mesh = operation.mesh;
  Step step(operation);
  if (mesh.rank() == root) {
    for (int peer = 0; peer < mesh.size(); ++peer) {
      if (peer != root) step.recv(peer, of(outputs, peer).data, of(outputs, peer).bytes);
    }
    copy_own(of(outputs, root), input);
  } else {
    step.send(root, input.data, input.bytes);
  }
  step.wait();
}

void run_scatter(Operation& operation, const Block& output, std::span<const Block> inputs, int root) {
  const Mesh& mesh = operation.mesh;
  Step step(operation);
  if (mesh.rank() == root) {
    for (int peer = 0; peer < mesh.size(); ++peer) {
      if (peer != root) step.send(peer, of(inputs, peer).data, of(inputs, peer).bytes);
    }
    copy_own(output, of(inputs, root));
  } else {
    step.recv(root, output.data, output.bytes);
  }
  step.wait();
}

void run_all_to_all(Operation& operation, std::span<const Block> outputs, std::span<const Block> inputs) {
  const Mesh& mesh = operation.mesh;
  Step step(operation);
  for (int peer = 0; peer < mesh.size(); ++peer) {
    if (peer != mesh.rank()) step.recv(peer, of(outputs, peer).data, of(outputs, peer).bytes);
  }
  for (int peer = 0; peer < mesh.size(); ++peer) {
    if (peer != mesh.rank()) step.send(peer, of(inputs, peer).data, of(inputs, peer).bytes);
  }
  copy_own(of(outputs, mesh.rank()), of(inputs, mesh.rank()));
  step.wait();
}

}  // namespace tensorplay::distributed
