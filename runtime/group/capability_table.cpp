#include "runtime/group/backend_registry.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace tensorplay::distributed {
namespace {

/// What the upstream table does not list, or lists as "no" for gloo and mpi on the CPU, gets a mark.
constexpr std::array kUpstream = {OpType::SEND,           OpType::RECV,      OpType::BROADCAST, OpType::ALLREDUCE,
                                  OpType::REDUCE,         OpType::ALLGATHER, OpType::GATHER,    OpType::SCATTER,
                                  OpType::REDUCE_SCATTER, OpType::ALLTOALL,  OpType::BARRIER};

bool is_addition(const std::string& backend, OpType type) {
  if (backend == "mpi" && type == OpType::REDUCE_SCATTER) return true;
  return std::find(kUpstream.begin(), kUpstream.end(), type) == kUpstream.end();
}

std::string cell(const std::string& name, const RegisteredBackend& backend, DeviceType device, OpType type) {
  const auto& devices = backend.traits.devices;
  if (std::find(devices.begin(), devices.end(), device) == devices.end()) return "no";
  if (backend.traits.operations.empty()) return "?";
  if (!backend.traits.operations.contains(type)) return "no";
  return is_addition(name, type) ? "yes +" : "yes";
}

void add_row(std::string& table, const std::vector<std::string>& cells) {
  table += "|";
  for (const auto& text : cells) table.append(" ").append(text).append(" |");
  table += "\n";
}

}  // namespace

std::string capability_table() {
  std::vector<std::string> head = {"function"};
  std::vector<std::string> rule = {"---"};
  std::vector<std::string> names = available_backends();
  for (const auto& name : names) {
    head.push_back(name + " CPU");
    head.push_back(name + " GPU");
    rule.insert(rule.end(), {"---", "---"});
  }
  std::string table;
  add_row(table, head);
  add_row(table, rule);
  for (const auto type : all_op_types()) {
    std::vector<std::string> row = {std::string(to_string(type))};
    for (const auto& name : names) {
      const auto backend = find_backend(name);
      const auto gpu = name == "xccl" ? DeviceType::kXPU : DeviceType::kCUDA;
      row.push_back(cell(name, backend, DeviceType::kCPU, type));
      row.push_back(cell(name, backend, gpu, type));
    }
    add_row(table, row);
  }
  return table + "\n+ not in the upstream table; ? not told by the backend. GPU is CUDA, for xccl XPU.\n";
}

}  // namespace tensorplay::distributed
