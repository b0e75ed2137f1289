#include "agent/numa.hpp"

#include "agent/usage_error.hpp"
#include "tests/agent/fake_machine.hpp"
#include "tests/support/catch.hpp"

using namespace tensorplay::agent;
using Cpus = std::vector<std::vector<int>>;

namespace {

const std::vector<std::string> kDevices = {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"};

/// Two sockets of two NUMA nodes of four CPUs (two cores of two threads each); GPUs on nodes 0, 0 and 2.
FakeMachine two_sockets() {
  FakeMachine machine;
  machine.cpus.clear();
  machine.add_file("/sys/devices/system/node/possible", "0-3\n");
  for (int cpu = 0; cpu < 16; ++cpu) {
    machine.cpus.push_back(cpu);
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    machine.add_file(folder + "/topology/physical_package_id", std::to_string(cpu / 8) + "\n");
    const int first = cpu / 4 * 4 + cpu % 2;
    machine.add_file(folder + "/topology/thread_siblings_list",
                     std::to_string(first) + "," + std::to_string(first + 2) + "\n");
    machine.add_file(folder + "/cache/index2/level", "2\n");
    machine.add_file(folder + "/cache/index3/level", "3\n");
    machine.add_file(
        folder + "/cache/index3/shared_cpu_list",
        cpu % 4 == 0 ? std::to_string(cpu) : std::to_string(cpu / 4 * 4 + 1) + "-" + std::to_string(cpu / 4 * 4 + 3));
  }
  for (int node = 0; node < 4; ++node) {
    machine.add_file("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist",
                     std::to_string(node * 4) + "-" + std::to_string(node * 4 + 3) + "\n");
  }
  machine.add_file("/sys/bus/pci/devices/0000:01:00.0/numa_node", "0\n");
  machine.add_file("/sys/bus/pci/devices/0000:02:00.0/numa_node", "-1\n");
  machine.add_file("/sys/bus/pci/devices/0000:03:00.0/numa_node", "2\n");
  return machine;
}

std::string complaint(const FakeMachine& machine, NumaBinding kind, int workers = 3) {
  try {
    bind_workers("--numa-binding", kind, workers, kDevices, machine);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(none)";
}

}  // namespace

TEST_CASE("node binds to the CPUs of the GPU's NUMA node and socket to all of its socket") {
  const FakeMachine machine = two_sockets();
  CHECK(bind_workers("n", NumaBinding::kNode, 3, kDevices, machine) ==
        Cpus{{0, 1, 2, 3}, {0, 1, 2, 3}, {8, 9, 10, 11}});
  CHECK(bind_workers("n", NumaBinding::kSocket, 3, kDevices, machine) ==
        Cpus{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}});
}

TEST_CASE("exclusive shares the node's physical cores out evenly among its GPUs") {
  FakeMachine machine = two_sockets();
  CHECK(bind_workers("n", NumaBinding::kExclusive, 3, kDevices, machine) == Cpus{{0, 2}, {1, 3}, {8, 9, 10, 11}});
  machine.cpus = {0, 2, 8};
  CHECK(complaint(machine, NumaBinding::kExclusive)
            .starts_with("--numa-binding: NUMA node 0 has 2 GPUs but tprun may use only 1"));
}

TEST_CASE("core-complex gives the k-th largest group that shares a last-level cache") {
  CHECK(bind_workers("n", NumaBinding::kCoreComplex, 3, kDevices, two_sockets()) == Cpus{{1, 2, 3}, {0}, {9, 10, 11}});
}

TEST_CASE("only CPUs that tprun may use are given out, and none at all is an error") {
  FakeMachine machine = two_sockets();
  machine.cpus = {1, 9};
  CHECK(bind_workers("n", NumaBinding::kNode, 3, kDevices, machine) == Cpus{{1}, {1}, {9}});
  machine.cpus = {1};
  CHECK(complaint(machine, NumaBinding::kNode)
            .starts_with("--numa-binding: of the CPUs near GPU 2 (NUMA node 2) tprun may use none"));
}

TEST_CASE("a binding without GPUs, or with too few, is refused") {
  CHECK(complaint(two_sockets(), NumaBinding::kNode, 4) ==
        "--numa-binding: 4 workers but only 3 GPUs here; give --nproc-per-node=gpu");
  CHECK(complaint(FakeMachine(), NumaBinding::kNode).starts_with("--numa-binding: sysfs does not know the NUMA node"));
  CHECK_THROWS_AS(bind_workers("n", NumaBinding::kNode, 1, {}, two_sockets()), UsageError);
}

TEST_CASE("CPU lists are read and written as the kernel does") {
  CHECK(parse_cpu_list("0-3,8,10-11\n") == std::vector<int>{0, 1, 2, 3, 8, 10, 11});
  CHECK(parse_cpu_list("").empty());
  CHECK(format_cpu_list({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
}
