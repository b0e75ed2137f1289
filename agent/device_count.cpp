#include "agent/device_count.hpp"

#include "agent/option_values.hpp"
#include "runtime/base/environment.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <set>

namespace tensorplay::agent {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string lower(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

/// Sorted by the number in each name ("nvidia2" before "nvidia10"), kept only where `prefix` and digits are all of it.
std::vector<std::string> numbered(std::vector<std::string> names, std::string_view prefix) {
  std::erase_if(names, [&](const std::string& name) {
    return !std::string_view(name).starts_with(prefix) || !is_digits(std::string_view(name).substr(prefix.size()));
  });
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}

/// Without the library: one GPU for each /dev/nvidiaN, with its UUID and address where the driver's folder has the same
/// number (a container often has fewer device files than the host has GPUs: then the minor number tells which).
std::vector<NvidiaDevice> nvidia_devices_by_files(const Machine& machine) {
  std::map<std::string, NvidiaDevice> by_minor;
  for (const std::string& address : machine.list_folder("/proc/driver/nvidia/gpus")) {
    NvidiaDevice device;
    device.pci_address = lower(address);
    std::string minor;
    const std::string text = machine.read_file("/proc/driver/nvidia/gpus/" + address + "/information").value_or("");
    for (const std::string_view line : split(text, '\n')) {
      const auto colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      const std::string_view key = trimmed(line.substr(0, colon)), value = trimmed(line.substr(colon + 1));
      if (key == "GPU UUID") device.uuid = std::string(value);
      if (key == "Device Minor") minor = std::string(value);
    }
    if (!minor.empty()) by_minor["nvidia" + minor] = device;
  }
  std::vector<NvidiaDevice> devices;
  for (const std::string& name : numbered(machine.list_folder("/dev"), "nvidia")) {
    const auto known = by_minor.find(name);
    devices.push_back(known != by_minor.end() ? known->second : NvidiaDevice{});
  }
  std::stable_sort(devices.begin(), devices.end(),
                   [](const NvidiaDevice& a, const NvidiaDevice& b) { return a.pci_address < b.pci_address; });
  return devices;
}

/// Index of the one string that begins with `prefix`; nullopt for none or several.
std::optional<std::size_t> unique_match(const std::vector<std::string>& uuids, std::string_view prefix) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    if (!lower(uuids[i]).starts_with(lower(std::string(prefix)))) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

/// Applies one list of indices or UUIDs to `devices`: cut off at the first entry that names none, empty when one comes
/// twice.
std::vector<std::string> narrowed(const std::vector<std::string>& devices, const std::vector<std::string>& uuids,
                                  std::string_view list) {
  std::vector<std::string> out;
  std::set<std::size_t> seen;
  for (const std::string_view entry : visible_entries(list)) {
    std::optional<std::size_t> index;
    if (is_digits(entry)) {
      index = static_cast<std::size_t>(as_whole(entry).value_or(1'000'000));
    } else if (entry.starts_with("GPU-")) {
      index = unique_match(uuids, entry);
    }
    if (!index || *index >= devices.size()) break;
    if (!seen.insert(*index).second) return {};
    out.push_back(devices[*index]);
  }
  return out;
}

}  // namespace

std::vector<std::string_view> visible_entries(std::string_view list) {
  std::vector<std::string_view> entries;
  if (trimmed(list).empty()) return entries;
  for (const std::string_view part : split(list, ',')) entries.push_back(trimmed(part));
  return entries;
}

std::vector<std::string> visible_cuda_devices(const EnvironmentView& environment, const Machine& machine,
                                              bool one_each) {
  const auto by_library = machine.nvidia_devices_by_library();
  const std::vector<NvidiaDevice> all = by_library ? *by_library : nvidia_devices_by_files(machine);
  std::vector<std::string> addresses, uuids, mig_uuids, mig_addresses;
  for (const NvidiaDevice& device : all) {
    addresses.push_back(device.pci_address);
    uuids.push_back(device.uuid);
    for (const std::string& mig : device.mig_uuids) {
      mig_uuids.push_back(mig);
      mig_addresses.push_back(device.pci_address);
    }
  }
  const auto list = environment.find(base::env::kCudaVisibleDevices);
  if (!list) {
    // CUDA shows undivided GPUs if there are any, else the first MIG instance.
    std::vector<std::string> whole;
    for (const NvidiaDevice& device : all) {
      if (!device.is_mig_enabled) whole.push_back(device.pci_address);
    }
    if (whole.empty() && !mig_addresses.empty()) whole.push_back(mig_addresses.front());
    return whole;
  }
  const auto entries = visible_entries(*list);
  const bool is_mig_list = !entries.empty() && entries.front().starts_with("MIG-");
  if (!is_mig_list) return narrowed(addresses, uuids, *list);

  std::vector<std::string> out;
  std::set<std::string_view> seen;
  for (const std::string_view entry : entries) {
    if (!entry.starts_with("MIG-")) break;
    // The driver's files do not list instances, and the library knows the old "MIG-GPU-<uuid>/1/0" form by other
    // names: there the entries are believed.
    const bool can_check = by_library && !entry.starts_with("MIG-GPU-");
    const auto index = can_check ? unique_match(mig_uuids, entry) : std::nullopt;
    if (can_check && !index) break;
    if (!seen.insert(entry).second) return {};
    out.push_back(index ? mig_addresses[*index] : std::string());
    if (!one_each) break;
  }
  if (!by_library && all.empty()) out.clear();
  return out;
}

std::vector<std::string> visible_hip_devices(const EnvironmentView& environment, const Machine& machine) {
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes";
  std::vector<std::string> addresses, uuids;
  for (const std::string& node : numbered(machine.list_folder(nodes), "")) {
    std::map<std::string, unsigned long long> properties;
    const std::string text = machine.read_file(nodes + "/" + node + "/properties").value_or("");
    for (const std::string_view line : split(text, '\n')) {
      const auto blank = line.find(' ');
      if (blank != std::string_view::npos) {
        properties[std::string(line.substr(0, blank))] =
            std::strtoull(std::string(line.substr(blank + 1)).c_str(), nullptr, 10);
      }
    }
    if (properties["simd_count"] == 0) continue;  // A CPU.
    const unsigned location = static_cast<unsigned>(properties["location_id"]);
    char address[32], uuid[32];
    std::snprintf(address, sizeof address, "%04x:%02x:%02x.%u", static_cast<unsigned>(properties["domain"]),
                  (location >> 8) & 0xff, (location >> 3) & 0x1f, location & 7);
    std::snprintf(uuid, sizeof uuid, "GPU-%016llx", properties["unique_id"]);
    addresses.emplace_back(address);
    uuids.emplace_back(uuid);
  }
  if (const auto rocr = environment.find(base::env::kRocrVisibleDevices)) {
    std::vector<std::string> kept_uuids = narrowed(uuids, uuids, *rocr);
    addresses = narrowed(addresses, uuids, *rocr);
    uuids = kept_uuids;
  }
  auto hip = environment.find(base::env::kHipVisibleDevices);
  if (!hip) hip = environment.find(base::env::kCudaVisibleDevices);
  return hip ? narrowed(addresses, uuids, *hip) : addresses;
}

std::vector<std::string> visible_xpu_devices(const EnvironmentView& environment, const Machine& machine,
                                             bool with_integrated) {
  std::vector<std::string> addresses;
  for (const std::string& card : numbered(machine.list_folder("/sys/class/drm"), "card")) {
    const std::string folder = "/sys/class/drm/" + card + "/device";
    if (trimmed(machine.read_file(folder + "/vendor").value_or("")) != "0x8086") continue;
    std::string address;
    const std::string text = machine.read_file(folder + "/uevent").value_or("");
    for (const std::string_view line : split(text, '\n')) {
      if (line.starts_with("PCI_SLOT_NAME=")) address = lower(std::string(trimmed(line.substr(14))));
    }
    addresses.push_back(address);
  }
  const auto is_integrated = [](const std::string& address) { return address == "0000:00:02.0"; };
  if (!with_integrated || !std::all_of(addresses.begin(), addresses.end(), is_integrated)) {
    std::erase_if(addresses, is_integrated);
  }
  const auto mask = environment.find_non_empty(base::env::kZeAffinityMask);
  if (!mask) return addresses;
  std::vector<std::string> out;
  std::set<std::string_view> seen;
  for (const std::string_view entry : visible_entries(*mask)) {
    const auto device = entry.substr(0, entry.find('.'));  // "0.1": a tile, which is a device of its own.
    const auto index = is_digits(device) ? as_whole(device) : std::nullopt;
    if (!index || static_cast<std::size_t>(*index) >= addresses.size() || !seen.insert(entry).second) continue;
    out.push_back(addresses[static_cast<std::size_t>(*index)]);
  }
  return out;
}

std::vector<std::string> visible_devices(const EnvironmentView& environment, const Machine& machine, bool one_each) {
  if (auto cuda = visible_cuda_devices(environment, machine, one_each); !cuda.empty()) return cuda;
  if (auto hip = visible_hip_devices(environment, machine); !hip.empty()) return hip;
  return visible_xpu_devices(environment, machine, false);
}

}  // namespace tensorplay::agent
