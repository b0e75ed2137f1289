/// The servers that store_bench measures: ours and torch's, each in a process of its own that ends with its owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

namespace tensorplay::bench {

/// A server process. Movable; ends the process when it goes.
class ServerProcess {
 public:
  /// Ours, on `cpu`.
  static ServerProcess ours(int cpu);
  /// torch's (libuv), on `cpu`, started through the Python that TP_TORCH_PYTHON names; nullopt, with a line that says
  /// why, when there is none.
  static std::optional<ServerProcess> torch(int cpu);

  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess& operator=(ServerProcess&&) = delete;
  ~ServerProcess();

  std::uint16_t port() const noexcept { return port_; }
  bool is_ours() const noexcept { return is_ours_; }
  long resident_kib() const;   ///< Memory the process holds now.
  double cpu_seconds() const;  ///< CPU time it has used.

 private:
  ServerProcess(pid_t pid, int control, std::uint16_t port, bool is_ours)
      : pid_(pid), control_(control), port_(port), is_ours_(is_ours) {}

  pid_t pid_;
  int control_;  ///< Our end of a pipe; the server ends when it closes.
  std::uint16_t port_;
  bool is_ours_;
};

/// Runs the calling thread on `cpu` only.
void pin_to(int cpu);

}  // namespace tensorplay::bench
