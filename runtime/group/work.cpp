#include "tensorplay/distributed/work.hpp"

#include "runtime/group/call_record.hpp"
#include "runtime/group/close_hook.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <utility>

namespace tensorplay::distributed {
namespace {

/// Tells a wait to whoever looks.
class WaitRecord {
 public:
  explicit WaitRecord(const Work& work) : sink_(g_call_sink.load(std::memory_order_acquire)), work_(work) {
    if (sink_ != nullptr) begin_ = CallRecord::Clock::now();
  }
  ~WaitRecord() {
    if (sink_ == nullptr) return;
    sink_->waited(work_.name(), work_.sequence_number(), begin_, CallRecord::Clock::now());
  }
  WaitRecord(const WaitRecord&) = delete;
  WaitRecord& operator=(const WaitRecord&) = delete;

 private:
  CallSink* sink_;
  const Work& work_;
  CallRecord::Clock::time_point begin_{};
};

}  // namespace

Work::Work(std::string name, std::uint64_t sequence)
    : name_(std::move(name)), sequence_(sequence), future_(std::make_shared<Future>()) {}

Work::~Work() = default;

bool Work::is_completed() const {
  return future_->is_completed();
}

bool Work::is_success() const {
  return future_->is_completed() && !future_->has_error();
}

std::exception_ptr Work::exception() const {
  return future_->error();
}

void Work::wait(std::chrono::milliseconds timeout) {
  const WaitRecord record(*this);
  if (timeout.count() > 0 && !future_->wait_for(timeout)) {
    throw DistBackendError(name_ + " #" + std::to_string(sequence_) + ": not complete after a wait of " +
                           std::to_string(timeout.count()) + " ms; it goes on");
  }
  if (timeout.count() <= 0) {
    constexpr auto kLong = std::chrono::hours(24);
    while (!future_->wait_for(kLong)) {
    }
  }
  if (const auto error = future_->error()) rethrow(error);
}

std::vector<Tensor> Work::result() const {
  return future_->value();
}

int Work::source_rank() const {
  if (source_rank_ < 0) throw InvalidArgument(name_ + " has no source rank: only a receive has");
  return source_rank_;
}

void Work::abort() {
  fail(std::make_exception_ptr(DistBackendError(name_ + " #" + std::to_string(sequence_) + ": aborted")));
}

}  // namespace tensorplay::distributed
