/// A server that does to its connections, one after another, what a test tells it: for peers that misbehave.
#pragma once

#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <atomic>
#include <functional>
#include <poll.h>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>

namespace tensorplay::testing {

class ScriptedServer {
 public:
  /// What to do with the first, second, ... connection; the last script serves all that follow. A connection is closed
  /// when its script returns or throws.
  using Script = std::function<void(int fd)>;

  explicit ScriptedServer(std::vector<Script> scripts)
      : scripts_(std::move(scripts)),
        listener_(base::listen_on("127.0.0.1", 0)),
        port_(base::SocketAddress::of_local_end(listener_.get()).port()),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  std::uint16_t port() const { return port_; }
  int connections() const { return connections_; }

  /// Reads `size` bytes, whatever they are.
  static std::string read(int fd, std::size_t size) {
    std::string bytes(size, '\0');
    base::recv_exact(fd, bytes.data(), size, distributed::Deadline::after(std::chrono::seconds(10)));
    return bytes;
  }
  static void write(int fd, std::string_view bytes) {
    base::send_all(fd, bytes, distributed::Deadline::after(std::chrono::seconds(10)));
  }
  /// Returns once the peer has closed; drops what it sends.
  static void until_closed(int fd) {
    char rest[256];
    while (base::recv_some(fd, rest, sizeof rest, distributed::Deadline::after(std::chrono::seconds(30))) > 0) {
    }
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd waited{listener_.get(), POLLIN, 0};
      if (::poll(&waited, 1, 10) <= 0) continue;
      const base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd) continue;
      const auto index = static_cast<std::size_t>(connections_++);
      try {
        scripts_[std::min(index, scripts_.size() - 1)](fd.get());
      } catch (const distributed::DistError&) {
      }
    }
  }

  std::vector<Script> scripts_;
  base::UniqueFd listener_;
  std::uint16_t port_;
  std::atomic<int> connections_ = 0;
  std::jthread thread_;
};

}  // namespace tensorplay::testing
