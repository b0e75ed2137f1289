#include "agent/nvidia_library.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <dlfcn.h>
#include <memory>
#include <string>

namespace tensorplay::agent {
namespace {

// The library's own types and numbers, as its binary interface fixes them.
using Device = struct OpaqueDevice*;
constexpr int kWorked = 0;
constexpr unsigned kMigOn = 1;

struct PciInfo {
  char old_bus_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char bus_id[32];
  char room[64];  ///< Should a later library write more.
};

class Library {
 public:
  Library() : handle_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), &close) {
    if (!handle_) return;
    const bool has_all = load(init_, "nvmlInit_v2") && load(shutdown_, "nvmlShutdown") &&
                         load(count_, "nvmlDeviceGetCount_v2") && load(device_, "nvmlDeviceGetHandleByIndex_v2") &&
                         load(uuid_, "nvmlDeviceGetUUID");
    load(pci_, "nvmlDeviceGetPciInfo_v3");
    load(mig_mode_, "nvmlDeviceGetMigMode");
    load(mig_count_, "nvmlDeviceGetMaxMigDeviceCount");
    load(mig_device_, "nvmlDeviceGetMigDeviceHandleByIndex");
    is_ready_ = has_all && init_() == kWorked;
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (is_ready_) shutdown_();
  }

  std::optional<std::vector<NvidiaDevice>> devices() const {
    unsigned count = 0;
    if (!is_ready_ || count_(&count) != kWorked) return std::nullopt;
    std::vector<NvidiaDevice> out;
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      if (device_(i, &device) == kWorked) out.push_back(describe(device));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const NvidiaDevice& a, const NvidiaDevice& b) { return a.pci_address < b.pci_address; });
    return out;
  }

 private:
  static void close(void* handle) {
    if (handle != nullptr) ::dlclose(handle);
  }

  template <typename Function>
  bool load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle_.get(), name));
    return function != nullptr;
  }

  std::string uuid_of(Device device) const {
    std::array<char, 128> text{};
    return uuid_(device, text.data(), text.size() - 1) == kWorked ? std::string(text.data()) : std::string();
  }

  NvidiaDevice describe(Device device) const {
    NvidiaDevice out;
    out.uuid = uuid_of(device);
    PciInfo pci{};
    if (pci_ != nullptr && pci_(device, &pci) == kWorked) {
      std::string address(pci.bus_id);
      if (address.size() > 12) address.erase(0, address.size() - 12);  // An eight-digit domain; sysfs has four.
      for (char& letter : address) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      out.pci_address = address;
    }
    unsigned current = 0, pending = 0;
    out.is_mig_enabled = mig_mode_ != nullptr && mig_mode_(device, &current, &pending) == kWorked && current == kMigOn;
    unsigned instances = 0;
    if (!out.is_mig_enabled || mig_count_ == nullptr || mig_device_ == nullptr) return out;
    if (mig_count_(device, &instances) != kWorked) return out;
    for (unsigned i = 0; i < instances; ++i) {
      Device instance = nullptr;
      if (mig_device_(device, i, &instance) == kWorked) out.mig_uuids.push_back(uuid_of(instance));
    }
    return out;
  }

  std::unique_ptr<void, void (*)(void*)> handle_;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*device_)(unsigned, Device*) = nullptr;
  int (*uuid_)(Device, char*, unsigned) = nullptr;
  int (*pci_)(Device, PciInfo*) = nullptr;
  int (*mig_mode_)(Device, unsigned*, unsigned*) = nullptr;
  int (*mig_count_)(Device, unsigned*) = nullptr;
  int (*mig_device_)(Device, unsigned, Device*) = nullptr;
  bool is_ready_ = false;
};

}  // namespace

std::optional<std::vector<NvidiaDevice>> list_nvidia_devices() {
  return Library().devices();
}

}  // namespace tensorplay::agent
