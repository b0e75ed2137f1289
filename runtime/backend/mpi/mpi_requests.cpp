#include "runtime/backend/mpi/mpi_requests.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tensorplay::distributed::mpi {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);
constexpr auto kLongestPause = std::chrono::microseconds(1000);

/// Between two questions: none at first, then longer and longer ones.
class Pauses {
 public:
  void pause() {
    if (std::chrono::steady_clock::now() - started_ < kSpin) {
      std::this_thread::yield();
      return;
    }
    std::this_thread::sleep_for(length_);
    length_ = std::min(length_ * 2, kLongestPause);
  }

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::chrono::microseconds length_{20};
};

bool are_complete(std::vector<MPI_Request>& requests, MPI_Status& last, const std::string& what) {
  const std::lock_guard lock(lock_of_mpi());
  bool all = true;
  for (auto& request : requests) {
    if (request == MPI_REQUEST_NULL) continue;
    int is_complete = 0;
    MPI_Status status;
    check(MPI_Test(&request, &is_complete, &status), what);
    if (is_complete != 0) {
      last = status;
    } else {
      all = false;
    }
  }
  return all;
}

std::string timeout_text(const std::string& what, std::chrono::milliseconds limit) {
  return what + ": timed out after " + std::to_string(limit.count()) + " ms; MPI does not tell which rank is late";
}

}  // namespace

MPI_Status wait_for(std::vector<MPI_Request>& requests, const std::string& what, std::chrono::milliseconds limit,
                    Deadline deadline, const std::function<std::string()>& should_stop) {
  MPI_Status last{};
  Pauses pauses;
  while (!are_complete(requests, last, what)) {
    if (deadline.has_passed()) throw DistBackendError(timeout_text(what, limit));
    if (const auto why = should_stop(); !why.empty()) throw DistBackendError(what + ": " + why);
    pauses.pause();
  }
  return last;
}

bool cancel(std::vector<MPI_Request>& receives) {
  const std::lock_guard lock(lock_of_mpi());
  bool all = true;
  for (auto& request : receives) {
    if (request == MPI_REQUEST_NULL) continue;
    int is_complete = 0;
    MPI_Cancel(&request);
    MPI_Test(&request, &is_complete, MPI_STATUS_IGNORE);
    all = all && is_complete != 0;
  }
  return all;
}

void keep_forever(std::shared_ptr<const void> memory) {
  static auto* const kept = new std::vector<std::shared_ptr<const void>>;
  static auto* const mutex = new std::mutex;
  const std::lock_guard lock(*mutex);
  kept->push_back(std::move(memory));
}

Requests::~Requests() {
  stop();
}

void Requests::add(Entry entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
  ++on_their_way_;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void Requests::run() {
  std::list<Entry> mine;
  Pauses pauses;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (mine.empty()) changed_.wait(lock, [&] { return is_ending_ || !entries_.empty(); });
      if (!entries_.empty()) pauses = Pauses();
      mine.splice(mine.end(), entries_);
      if (mine.empty() && is_ending_) return;
    }
    bool has_progress = false;
    for (auto entry = mine.begin(); entry != mine.end();) {
      std::exception_ptr error;
      MPI_Status status{};
      bool is_over = false;
      try {
        is_over = are_complete(entry->requests, status, entry->what);
        if (!is_over && entry->deadline.has_passed()) {
          throw DistBackendError(timeout_text(entry->what, entry->limit));
        }
        if (const auto why = should_stop_(); !is_over && !why.empty()) throw DistBackendError(entry->what + ": " + why);
      } catch (...) {
        error = std::current_exception();
      }
      if (!is_over && !error) {
        ++entry;
        continue;
      }
      if (error) {
        keep_forever(entry->memory);
        entry->fail(error, entry->requests);
      } else {
        try {
          entry->complete(status);
        } catch (...) {
          entry->fail(std::current_exception(), entry->requests);
        }
      }
      entry = mine.erase(entry);
      has_progress = true;
      const std::lock_guard lock(mutex_);
      --on_their_way_;
      changed_.notify_all();
    }
    if (has_progress) {
      pauses = Pauses();
    } else if (!mine.empty()) {
      pauses.pause();
    }
  }
}

bool Requests::drain(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return on_their_way_ == 0; });
}

void Requests::stop() {
  std::thread ended;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    ended.swap(thread_);
    changed_.notify_all();
  }
  if (ended.joinable()) ended.join();
}

}  // namespace tensorplay::distributed::mpi
