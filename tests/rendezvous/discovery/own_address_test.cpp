// A host of its own: network, host name and hosts file in namespaces of a child process. Needs root.
#include "rendezvous/discovery/discovery.hpp"
#include "runtime/base/host.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sched.h>
#include <unistd.h>

#include <sys/mount.h>
#include <sys/wait.h>

using namespace std::chrono_literals;
using namespace tensorplay;
using namespace tensorplay::rendezvous;
using distributed::Deadline;

namespace {

/// Whether `host` makes this process the store's host, bound to all addresses; a text for what else happens.
std::string hosts_at(const std::string& host) {
  DiscoveryOptions options;
  options.endpoints = {{host, 29400}};
  options.run_id = "job7";
  options.user = "ada";
  try {
    const auto place = make_discovery("c10d", options)->find({}, Deadline::after(150ms), {});
    if (!place.is_host) return "joined";
    const auto bound = base::SocketAddress::of_local_end(place.listen_fd.get());
    return bound.is_loopback() ? "hosts on loopback" : "hosts";
  } catch (const distributed::TimeoutError&) {
    return "waited";
  }
}

void become_a_host(const std::string& hosts_file) {
  if (::unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS) != 0) ::_exit(77);
  if (::sethostname("node7", 5) != 0) ::_exit(2);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(3);
  if (::mount(hosts_file.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) ::_exit(4);
  for (const char* command : {"ip link set lo up", "ip link add d0 type veth peer name d1", "ip link set d0 up",
                              "ip link set d1 up", "ip addr add 10.77.0.1/24 dev d0", "ip addr add 10.78.0.1/24 dev d0",
                              "ip -6 addr add fd77::1/64 dev d0 nodad"}) {
    if (std::system(command) != 0) ::_exit(5);
  }
}

}  // namespace

TEST_CASE("any address of any interface, and the own name though it leads to loopback, make the host") {
  if (::geteuid() != 0) return;
  const testing::TemporaryDirectory folder;
  std::ofstream(folder.file("hosts")) << "127.0.0.1 localhost\n127.0.1.1 node7.example.org node7\n10.77.0.9 node9\n";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    become_a_host(folder.file("hosts"));
    std::vector<std::pair<std::string, std::string>> expected{{"10.77.0.1", "hosts"},
                                                              {"10.78.0.1", "hosts"},
                                                              {"fd77::1", "hosts"},
                                                              {"node7", "hosts"},
                                                              {"node7.example.org", "hosts"},
                                                              {"localhost", "hosts on loopback"},
                                                              {"127.0.0.1", "hosts on loopback"},
                                                              {"10.77.0.9", "waited"},
                                                              {"node9", "waited"},
                                                              {"node8", "waited"}};
    for (const auto& address : base::interface_addresses()) {
      if (address.is_ipv6 && address.is_link_local) expected.emplace_back(address.address, "hosts");
    }
    for (const auto& [host, what] : expected) {
      const std::string got = hosts_at(host);
      if (got == what) continue;
      const std::string line = host + ": " + got + " instead of " + what + "\n";
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) return;  // Namespaces are not allowed here.
  REQUIRE(WEXITSTATUS(status) == 0);
}
