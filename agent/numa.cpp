#include "agent/numa.hpp"

#include "agent/option_values.hpp"
#include "agent/usage_error.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>

namespace tensorplay::agent {
namespace {

const std::string kCpuFolder = "/sys/devices/system/cpu/cpu";
const std::string kNodeFolder = "/sys/devices/system/node/node";

class Binder {
 public:
  Binder(const std::string& where, const std::vector<std::string>& devices, const Machine& machine)
      : where_(where), devices_(devices), machine_(machine), allowed_(machine.allowed_cpus()) {
    for (const std::string& device : devices) nodes_.push_back(node_of(device));
  }

  std::vector<int> bind(NumaBinding kind, std::size_t gpu) const {
    std::vector<int> cpus;
    switch (kind) {
      case NumaBinding::kNone:
        return {};
      case NumaBinding::kNode:
        cpus = cpus_of_node(nodes_[gpu]);
        break;
      case NumaBinding::kSocket:
        cpus = cpus_of_socket(nodes_[gpu]);
        break;
      case NumaBinding::kExclusive:
        cpus = exclusive_share(gpu);
        break;
      case NumaBinding::kCoreComplex:
        cpus = core_complex(gpu);
        break;
    }
    if (cpus.empty()) {
      throw UsageError(where_ + ": of the CPUs near GPU " + std::to_string(gpu) + " (NUMA node " +
                       std::to_string(nodes_[gpu]) + ") tprun may use none; widen its CPU set or drop the option");
    }
    return cpus;
  }

 private:
  int node_of(const std::string& device) const {
    if (device.empty()) throw UsageError(where_ + ": the PCI address of a GPU is not known here; drop the option");
    // The library pads the domain to eight digits where sysfs has four.
    const std::string address = device.size() > 12 ? device.substr(device.size() - 12) : device;
    const auto text = machine_.read_file("/sys/bus/pci/devices/" + address + "/numa_node");
    const auto node = text ? as_whole(*text) : std::nullopt;
    if (!node) throw UsageError(where_ + ": sysfs does not know the NUMA node of GPU " + address + "; drop the option");
    return static_cast<int>(std::max(0L, *node));  // -1: a machine without NUMA.
  }

  std::vector<int> allowed_among(const std::vector<int>& cpus) const {
    std::vector<int> out;
    std::set_intersection(cpus.begin(), cpus.end(), allowed_.begin(), allowed_.end(), std::back_inserter(out));
    return out;
  }

  std::vector<int> cpu_list(const std::string& path) const {
    return parse_cpu_list(machine_.read_file(path).value_or(""));
  }

  std::vector<int> cpus_of_node(int node) const {
    return allowed_among(cpu_list(kNodeFolder + std::to_string(node) + "/cpulist"));
  }

  std::string socket_of_node(int node) const {
    const auto cpus = cpu_list(kNodeFolder + std::to_string(node) + "/cpulist");
    if (cpus.empty()) return "";
    const std::string path = kCpuFolder + std::to_string(cpus.front()) + "/topology/physical_package_id";
    return std::string(trimmed(machine_.read_file(path).value_or("")));
  }

  std::vector<int> cpus_of_socket(int node) const {
    const std::string socket = socket_of_node(node);
    std::set<int> cpus;
    for (const int other : parse_cpu_list(machine_.read_file("/sys/devices/system/node/possible").value_or("0"))) {
      if (other != node && (socket.empty() || socket_of_node(other) != socket)) continue;
      for (const int cpu : cpus_of_node(other)) cpus.insert(cpu);
    }
    return {cpus.begin(), cpus.end()};
  }

  /// GPUs of the node, in order, and the place of `gpu` among them.
  std::pair<std::size_t, std::size_t> place_on_node(std::size_t gpu) const {
    std::size_t place = 0, count = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i] != nodes_[gpu]) continue;
      if (i < gpu) ++place;
      ++count;
    }
    return {place, count};
  }

  /// The CPUs of the node in groups of `list_name` (cores, cache sharers), each ascending, ordered by their first CPU.
  std::vector<std::vector<int>> groups(int node, const std::function<std::vector<int>(int)>& sharers) const {
    std::map<int, std::vector<int>> by_first;
    for (const int cpu : cpus_of_node(node)) {
      std::vector<int> group = sharers(cpu);
      if (group.empty()) group = {cpu};
      by_first[group.front()].push_back(cpu);
    }
    std::vector<std::vector<int>> out;
    for (auto& [first, cpus] : by_first) out.push_back(std::move(cpus));
    return out;
  }

  std::vector<int> exclusive_share(std::size_t gpu) const {
    const auto cores = groups(nodes_[gpu], [this](int cpu) {
      return cpu_list(kCpuFolder + std::to_string(cpu) + "/topology/thread_siblings_list");
    });
    const auto [place, count] = place_on_node(gpu);
    if (cores.size() < count) {
      throw UsageError(where_ + ": NUMA node " + std::to_string(nodes_[gpu]) + " has " + std::to_string(count) +
                       " GPUs but tprun may use only " + std::to_string(cores.size()) +
                       " of its cores; give node or socket, or widen its CPU set");
    }
    const std::size_t each = cores.size() / count, extra = cores.size() % count;
    const std::size_t first = place * each + std::min(place, extra);
    std::vector<int> cpus;
    for (std::size_t i = first; i < first + each + (place < extra ? 1 : 0); ++i) {
      cpus.insert(cpus.end(), cores[i].begin(), cores[i].end());
    }
    std::sort(cpus.begin(), cpus.end());
    return cpus;
  }

  std::vector<int> last_level_sharers(int cpu) const {
    const std::string folder = kCpuFolder + std::to_string(cpu) + "/cache";
    for (const std::string& index : machine_.list_folder(folder)) {
      if (!index.starts_with("index")) continue;
      if (trimmed(machine_.read_file(folder + "/" + index + "/level").value_or("")) != "3") continue;
      return cpu_list(folder + "/" + index + "/shared_cpu_list");
    }
    return {};
  }

  std::vector<int> core_complex(std::size_t gpu) const {
    auto complexes = groups(nodes_[gpu], [this](int cpu) { return last_level_sharers(cpu); });
    if (complexes.empty()) return {};
    std::stable_sort(complexes.begin(), complexes.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
    return complexes[place_on_node(gpu).first % complexes.size()];
  }

  const std::string& where_;
  const std::vector<std::string>& devices_;
  const Machine& machine_;
  std::vector<int> allowed_;
  std::vector<int> nodes_;  ///< NUMA node of each GPU.
};

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  for (const std::string_view part : split(trimmed(text), ',')) {
    const auto ends = split(part, '-');
    const auto first = as_whole(ends.front()), last = as_whole(ends.back());
    constexpr long kMost = 1 << 20;
    if (!first || !last || *first < 0 || *last > kMost || ends.size() > 2) continue;
    for (long cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

std::string format_cpu_list(const std::vector<int>& cpus) {
  std::string out;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!out.empty()) out += ',';
    out += std::to_string(cpus[i]);
    if (last > i) out += '-' + std::to_string(cpus[last]);
    i = last + 1;
  }
  return out;
}

std::vector<std::vector<int>> bind_workers(const std::string& where, NumaBinding kind, int workers,
                                           const std::vector<std::string>& devices, const Machine& machine) {
  if (devices.empty()) throw UsageError(where + ": there is no GPU here to bind to; drop the option");
  if (static_cast<std::size_t>(workers) > devices.size()) {
    throw UsageError(where + ": " + std::to_string(workers) + " workers but only " + std::to_string(devices.size()) +
                     " GPUs here; give --nproc-per-node=gpu");
  }
  const Binder binder(where, devices, machine);
  std::vector<std::vector<int>> out;
  for (int k = 0; k < workers; ++k) out.push_back(binder.bind(kind, static_cast<std::size_t>(k)));
  return out;
}

}  // namespace tensorplay::agent
