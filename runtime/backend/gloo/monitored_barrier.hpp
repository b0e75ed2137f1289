#pragma once

#include "runtime/backend/gloo/step.hpp"

#include <chrono>
#include <string>

namespace tensorplay::distributed {

/// A barrier with one verdict for all who came.
///
/// Rank 0 greets everybody, waits until the deadline for each rank to say it is here, and sends those who did the
/// verdict: nothing, or who is missing and what the transport said of it. The others wait for the greeting until their
/// own deadline, and for the verdict one timeout and a little longer, since rank 0 may have begun that much later.
/// When somebody is missing every rank closes its connections.
/// Thread rules: one thread; runs as an operation of the mesh.
class MonitoredBarrier {
 public:
  MonitoredBarrier(Operation& operation, std::chrono::milliseconds timeout);

  /// DistBackendError with the verdict. With `wait_all_ranks` every missing rank is named, else the first.
  void run(bool wait_all_ranks);

 private:
  void lead(bool wait_all_ranks);
  void follow();
  [[noreturn]] void end(const std::string& verdict);

  const SigpipeGuard guard_;
  Operation& operation_;
  std::chrono::milliseconds timeout_;
};

}  // namespace tensorplay::distributed
