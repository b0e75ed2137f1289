#pragma once

#include "runtime/backend/mpi/mpi_session.hpp"
#include "tensorplay/distributed/deadline.hpp"
#include "tensorplay/distributed/work.hpp"

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tensorplay::distributed::mpi {

/// Asks about requests until all are complete. They are asked at once, again and again for some tens of microseconds,
/// then in growing intervals of up to a millisecond. Returns the last one's status. At the deadline, or when
/// `should_stop` says so, throws DistBackendError that begins with `what`; the requests are abandoned then, and what
/// they use has to be kept (see `keep_forever`).
MPI_Status wait_for(std::vector<MPI_Request>& requests, const std::string& what, std::chrono::milliseconds limit,
                    Deadline deadline, const std::function<std::string()>& should_stop);

/// Takes receives back that nothing came for; whether all of them could be.
bool cancel(std::vector<MPI_Request>& receives);

/// Memory that MPI may still write to after its operation has been given up.
void keep_forever(std::shared_ptr<const void> memory);

/// Point-to-point requests on their way, with one thread that asks about all of them while there are any.
class Requests {
 public:
  struct Entry {
    std::vector<MPI_Request> requests;
    std::string what;
    std::chrono::milliseconds limit;
    Deadline deadline;
    std::function<void(const MPI_Status&)> complete;
    std::function<void(std::exception_ptr, std::vector<MPI_Request>&)> fail;
    std::shared_ptr<const void> memory;
  };

  explicit Requests(std::function<std::string()> should_stop) : should_stop_(std::move(should_stop)) {}
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  void add(Entry entry);
  bool drain(std::chrono::milliseconds limit);  ///< Whether none is left.
  void stop();                                  ///< Fails what is left.

 private:
  void run();

  std::function<std::string()> should_stop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Entry> entries_;
  std::size_t on_their_way_ = 0;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace tensorplay::distributed::mpi
