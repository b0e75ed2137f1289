/// A stretch of network that a test can cut: passes bytes on between clients and a server's port, until told otherwise.
#pragma once

#include "runtime/base/socket.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <poll.h>
#include <thread>
#include <vector>

namespace tensorplay::rendezvous::testing {

/// Thread rules: any thread.
class Relay {
 public:
  explicit Relay(std::uint16_t server_port)
      : server_port_(server_port), listener_(base::listen_on("127.0.0.1", 0)), thread_([this] { run(); }) {}
  ~Relay() {
    is_over_ = true;
    thread_.join();
  }

  std::uint16_t port() const { return base::SocketAddress::of_local_end(listener_.get()).port(); }

  /// Closes every connection; new ones are passed on as before.
  void cut() { is_cut_ = true; }

  /// From now on nothing comes through, and nobody is told.
  void swallow() { is_swallowing_ = true; }

  int connections() const { return connections_; }

 private:
  struct Pair {
    base::UniqueFd client;
    base::UniqueFd server;
    bool is_open = true;
  };

  void run() {
    while (!is_over_) {
      std::vector<pollfd> fds{{listener_.get(), POLLIN, 0}};
      for (const auto& pair : pairs_) {
        fds.push_back({pair.client.get(), POLLIN, 0});
        fds.push_back({pair.server.get(), POLLIN, 0});
      }
      ::poll(fds.data(), fds.size(), 1);
      if (is_cut_.exchange(false)) {
        pairs_.clear();
        continue;
      }
      for (std::size_t i = 0; i < pairs_.size(); ++i) {
        auto& pair = pairs_[i];
        if (fds[1 + 2 * i].revents != 0) pass(pair, pair.client.get(), pair.server.get());
        if (fds[2 + 2 * i].revents != 0) pass(pair, pair.server.get(), pair.client.get());
      }
      std::erase_if(pairs_, [](const Pair& pair) { return !pair.is_open; });
      if (fds[0].revents != 0) accept();
    }
  }

  void accept() {
    base::UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client) return;
    try {
      auto server = base::connect_to("127.0.0.1", server_port_, base::Deadline::after(std::chrono::seconds(10)));
      pairs_.push_back({std::move(client), std::move(server)});
      ++connections_;
    } catch (const std::exception&) {
    }
  }

  void pass(Pair& pair, int from, int to) {
    char buffer[64 << 10];
    const auto got = ::recv(from, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got <= 0) {
      pair.is_open = false;
    } else if (!is_swallowing_) {
      try {
        base::send_all(to, {buffer, static_cast<std::size_t>(got)}, base::Deadline::after(std::chrono::seconds(10)));
      } catch (const std::exception&) {
        pair.is_open = false;
      }
    }
  }

  const std::uint16_t server_port_;
  const base::UniqueFd listener_;
  std::atomic<bool> is_over_{false};
  std::atomic<bool> is_cut_{false};
  std::atomic<bool> is_swallowing_{false};
  std::atomic<int> connections_{0};
  std::vector<Pair> pairs_;
  std::thread thread_;
};

}  // namespace tensorplay::rendezvous::testing
