#include "runtime/profiler/recording.hpp"
#include "runtime/profiler/report.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <utility>

namespace tensorplay::profiler {
namespace {

using distributed::CallRecord;
using distributed::CallSink;
using Recordings = std::vector<std::shared_ptr<profile::Recording>>;

std::string text_of(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

Event event_of(const CallRecord& record) {
  Event event;
  const auto names = names_of(record.type, !record.in_splits.empty() || !record.out_splits.empty());
  event.name = record.backend + ":" + names.operation;
  event.collective_name = names.collective;
  event.group_name = record.group_name;
  event.group_desc = record.group_desc;
  event.group_ranks = record.group_ranks;
  if (record.dtype) {
    event.dtype = to_string(*record.dtype);
    event.bytes =
        std::max(record.in_elements, record.out_elements) * static_cast<std::int64_t>(element_size(*record.dtype));
  }
  event.in_elements = record.in_elements;
  event.out_elements = record.out_elements;
  event.in_split_sizes = record.in_splits;
  event.out_split_sizes = record.out_splits;
  event.peer = record.peer;
  event.sequence = record.sequence;
  event.is_async = record.is_async;
  event.start_ns = nanoseconds(record.begin);
  event.end_ns = nanoseconds(record.end);
  event.thread = current_thread();
  event.error = text_of(record.error);
  return event;
}

/// The one sink: hands everything to the profiles there are.
class Recorder final : public CallSink {
 public:
  /// Never destroyed: operations may end after everything else has.
  static Recorder& instance() {
    static auto* const recorder = new Recorder;
    return *recorder;
  }

  void add(std::shared_ptr<profile::Recording> recording) {
    const std::lock_guard lock(mutex_);
    recordings_.push_back(std::move(recording));
    distributed::g_call_sink.store(this, std::memory_order_release);
  }

  void remove(const std::shared_ptr<profile::Recording>& recording) {
    const std::lock_guard lock(mutex_);
    std::erase(recordings_, recording);
    if (recordings_.empty()) distributed::g_call_sink.store(nullptr, std::memory_order_release);
  }

  void tell(const Event& event) {
    const std::lock_guard lock(mutex_);
    for (const auto& recording : recordings_) recording->add(event);
  }

  void call_returned(const CallRecord& record) noexcept override {
    try {
      Event event = event_of(record);
      event.kind = Event::Kind::kCall;
      event.name = "record_param_comms";
      tell(event);
    } catch (...) {  // Out of memory: the operation matters more than its record.
    }
  }
  void operation_ended(const CallRecord& record) noexcept override {
    try {
      tell(event_of(record));
    } catch (...) {
    }
  }
  void waited(std::string_view name, std::uint64_t sequence, CallRecord::Clock::time_point begin,
              CallRecord::Clock::time_point end) noexcept override {
    try {
      Event event;
      event.kind = Event::Kind::kWait;
      event.name = "wait";
      event.collective_name = name;
      event.sequence = sequence;
      event.start_ns = nanoseconds(begin);
      event.end_ns = nanoseconds(end);
      event.thread = current_thread();
      tell(event);
    } catch (...) {
    }
  }

 private:
  std::mutex mutex_;
  Recordings recordings_;
};

}  // namespace

profile::profile(const ProfileOptions& options) : recording_(std::make_shared<Recording>(options.most_events)) {
  Recorder::instance().add(recording_);
}

profile::~profile() {
  stop();
}

void profile::stop() {
  Recorder::instance().remove(recording_);
}

std::vector<Event> profile::events() const {
  return recording_->sorted();
}

std::size_t profile::dropped_events() const {
  const std::lock_guard lock(recording_->mutex);
  return recording_->dropped;
}

std::vector<EventAverage> profile::key_averages() const {
  return average(events());
}

std::string profile::table() const {
  return make_table(key_averages());
}

void profile::export_chrome_trace(const std::string& path) const {
  write_chrome_trace(path, events());
}

record_function::record_function(std::string_view name) : name_(name) {
  if (distributed::g_call_sink.load(std::memory_order_acquire) != nullptr) {
    begin_ = nanoseconds(CallRecord::Clock::now());
  }
}

record_function::~record_function() {
  if (begin_ < 0) return;
  Event event;
  event.kind = Event::Kind::kUser;
  event.name = name_;
  event.start_ns = begin_;
  event.end_ns = nanoseconds(CallRecord::Clock::now());
  event.thread = current_thread();
  Recorder::instance().tell(event);
}

}  // namespace tensorplay::profiler
