/// A real etcd on loopback, with a folder of its own, for as long as this object lives.
#pragma once

#include "rendezvous/discovery/etcd_client.hpp"
#include "runtime/base/socket.hpp"
#include "tests/support/temporary_directory.hpp"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/wait.h>

namespace tensorplay::testing {

class EtcdServer {
 public:
  static bool is_installed() { return ::access("/usr/bin/etcd", X_OK) == 0; }

  EtcdServer() : port_(free_port()), peer_port_(free_port()) { start(); }
  ~EtcdServer() { kill(); }
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  /// Starts it again on the same port, with what it had on disk.
  void start() {
    const std::string client = "http://127.0.0.1:" + std::to_string(port_);
    const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
    const std::string data = directory_.file("data");
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int null = ::open("/dev/null", O_RDWR);
      ::dup2(null, 1);
      ::dup2(null, 2);
      ::execl("/usr/bin/etcd", "etcd", "--data-dir", data.c_str(), "--listen-client-urls", client.c_str(),
              "--advertise-client-urls", client.c_str(), "--listen-peer-urls", peer.c_str(),
              "--initial-advertise-peer-urls", peer.c_str(), "--initial-cluster", ("default=" + peer).c_str(),
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (true) {
      try {
        client_of_own().get("/is there anybody");
        return;
      } catch (const rendezvous::EtcdUnavailable&) {
        if (std::chrono::steady_clock::now() > end) throw;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void freeze() { ::kill(pid_, SIGSTOP); }
  void thaw() { ::kill(pid_, SIGCONT); }

  rendezvous::Endpoint endpoint() const { return {"localhost", port_}; }
  rendezvous::EtcdClient client_of_own() const {
    return rendezvous::EtcdClient({{{"127.0.0.1", port_}, "127.0.0.1"}}, never_);
  }

 private:
  static std::uint16_t free_port() {
    const auto fd = base::listen_on("127.0.0.1", 0);
    return base::SocketAddress::of_local_end(fd.get()).port();
  }

  rendezvous::Interrupt never_;
  TemporaryDirectory directory_;
  std::uint16_t port_;
  std::uint16_t peer_port_;
  pid_t pid_ = -1;
};

}  // namespace tensorplay::testing
