#include "agent/device_count.hpp"

#include "tests/agent/fake_machine.hpp"
#include "tests/support/catch.hpp"

using namespace tensorplay::agent;
using Words = std::vector<std::string>;

namespace {

FakeMachine four_gpus() {
  FakeMachine machine;
  machine.nvidia = {{"GPU-aa11", "0000:01:00.0", {}, false},
                    {"GPU-aa22", "0000:02:00.0", {}, false},
                    {"GPU-bb33", "0000:03:00.0", {}, false},
                    {"GPU-cc44", "0000:04:00.0", {}, false}};
  return machine;
}

std::size_t cuda(const FakeMachine& machine, const std::string& list, bool one_each = false) {
  return visible_cuda_devices(EnvironmentView(Words{"CUDA_VISIBLE_DEVICES=" + list}), machine, one_each).size();
}

}  // namespace

TEST_CASE("CUDA_VISIBLE_DEVICES narrows the GPUs as CUDA itself reads it") {
  const FakeMachine machine = four_gpus();
  CHECK(visible_cuda_devices(EnvironmentView(Words{}), machine, false).size() == 4);
  CHECK(cuda(machine, "") == 0);
  CHECK(cuda(machine, "3,1") == 2);
  CHECK(cuda(machine, " 0 , 2 ") == 2);
  CHECK(cuda(machine, "0,9,1") == 1);  // The first that names none ends the list.
  CHECK(cuda(machine, "-1") == 0);
  CHECK(cuda(machine, "0,-1,2") == 1);
  CHECK(cuda(machine, "NoDevFiles") == 0);
  CHECK(cuda(machine, "1,1") == 0);  // A repeated one empties it.
  CHECK(cuda(machine, "GPU-aa22,GPU-cc") == 2);
  CHECK(cuda(machine, "GPU-aa,GPU-cc44") == 0);  // Cut short to what two devices share.
  CHECK(cuda(machine, "99999999999999999999") == 0);
  CHECK(visible_cuda_devices(EnvironmentView(Words{"CUDA_VISIBLE_DEVICES=3,GPU-aa11"}), machine, false) ==
        Words{"0000:04:00.0", "0000:01:00.0"});
}

TEST_CASE("a process has one MIG instance, but with an entry for each worker all count") {
  FakeMachine machine = four_gpus();
  (*machine.nvidia)[0].is_mig_enabled = true;
  (*machine.nvidia)[0].mig_uuids = {"MIG-1", "MIG-2", "MIG-3"};
  CHECK(visible_cuda_devices(EnvironmentView(Words{}), machine, false).size() == 3);  // The undivided ones.
  CHECK(cuda(machine, "MIG-1,MIG-3") == 1);
  CHECK(cuda(machine, "MIG-1,MIG-3", true) == 2);
  CHECK(cuda(machine, "MIG-1,MIG-9,MIG-3", true) == 1);
  CHECK(cuda(machine, "MIG-GPU-aa11/1/0,MIG-GPU-aa11/2/0", true) == 2);
  machine.nvidia->resize(1);
  CHECK(visible_cuda_devices(EnvironmentView(Words{}), machine, false).size() == 1);
}

TEST_CASE("without the library GPUs are the driver's device files") {
  FakeMachine machine;
  for (const char* name : {"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm"})
    machine.add_file(std::string("/dev/") + name);
  machine.add_file("/proc/driver/nvidia/gpus/0000:3B:00.0/information",
                   "Model: \t\t H200\nGPU UUID: \t GPU-77\nDevice Minor: \t 1\n");
  CHECK(visible_cuda_devices(EnvironmentView(Words{}), machine, false).size() == 3);
  CHECK(visible_cuda_devices(EnvironmentView(Words{"CUDA_VISIBLE_DEVICES=GPU-77"}), machine, false) ==
        Words{"0000:3b:00.0"});
  CHECK(visible_cuda_devices(EnvironmentView(Words{}), FakeMachine(), false).empty());
}

TEST_CASE("AMD GPUs come from the kfd topology, narrowed by ROCR then by HIP") {
  FakeMachine machine;
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
  machine.add_file(nodes + "0/properties", "cpu_cores_count 64\nsimd_count 0\n");
  for (int i = 1; i <= 3; ++i) {
    machine.add_file(
        nodes + std::to_string(i) + "/properties",
        "simd_count 880\nlocation_id " + std::to_string(i * 256) + "\ndomain 0\nunique_id " + std::to_string(i) + "\n");
  }
  const auto hip = [&](const Words& environment) { return visible_hip_devices(EnvironmentView(environment), machine); };
  CHECK(hip({}) == Words{"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"});
  CHECK(hip({"ROCR_VISIBLE_DEVICES=2,0"}) == Words{"0000:03:00.0", "0000:01:00.0"});
  CHECK(hip({"ROCR_VISIBLE_DEVICES=2,0", "HIP_VISIBLE_DEVICES=1"}) == Words{"0000:01:00.0"});
  CHECK(hip({"ROCR_VISIBLE_DEVICES=GPU-0000000000000002"}) == Words{"0000:02:00.0"});
  CHECK(hip({"CUDA_VISIBLE_DEVICES=0"}).size() == 1);
  CHECK(hip({"HIP_VISIBLE_DEVICES="}).empty());
}

TEST_CASE("Intel GPUs are cards of that maker, narrowed by ZE_AFFINITY_MASK") {
  FakeMachine machine;
  machine.add_file("/sys/class/drm/card0/device/vendor", "0x1a03\n");
  machine.add_file("/sys/class/drm/card1/device/vendor", "0x8086\n");
  machine.add_file("/sys/class/drm/card2/device/vendor", "0x8086\n");
  machine.add_file("/sys/class/drm/card1-DP-1/device/vendor", "0x8086\n");
  const auto xpu = [&](const Words& environment, bool with_integrated = true) {
    return visible_xpu_devices(EnvironmentView(environment), machine, with_integrated).size();
  };
  CHECK(xpu({}) == 2);
  CHECK(xpu({"ZE_AFFINITY_MASK=1"}) == 1);
  CHECK(xpu({"ZE_AFFINITY_MASK=0.0,0.1,1"}) == 3);
  machine.add_file("/sys/class/drm/card1/device/uevent", "DRIVER=xe\nPCI_SLOT_NAME=0000:00:02.0\n");
  CHECK(xpu({}) == 1);
  machine.files.erase("/sys/class/drm/card2/device/vendor");
  CHECK(xpu({}) == 1);
  CHECK(xpu({}, false) == 0);
}
