/// Single messages whose failure or lateness concerns nobody else, for the monitored barrier.
#pragma once

#include "tensorplay/distributed/deadline.hpp"

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace tensorplay::distributed {

/// Ends the wait for one buffer at the deadline. Gloo's own timeout would close the connections to all peers.
/// Thread rules: one thread waits.
class Alarm {
 public:
  explicit Alarm(Deadline deadline);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  /// From now on, and until set(nullptr), the buffer that somebody is blocked on; ended at once when it is too late.
  void set(gloo::transport::UnboundBuffer* buffer);

 private:
  static void ring(gloo::transport::UnboundBuffer& buffer);

  Deadline deadline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  gloo::transport::UnboundBuffer* buffer_ = nullptr;
  bool has_rung_ = false;
  bool is_over_ = false;
  std::jthread thread_;
};

/// One message of a fixed size, in or out.
class Arrival {
 public:
  Arrival(gloo::transport::Context& context, std::size_t bytes);

  void receive(int peer, std::uint64_t slot);
  void send(int peer, std::uint64_t slot, const std::string& text);  ///< Cut to size.

  /// Empty once the message is here, else why it is not: what the transport said, or that time was up.
  std::string wait(Alarm& alarm);
  std::string wait_sent(Alarm& alarm);

  /// The same without waiting.
  std::string look();

  /// What arrived, up to its first zero.
  std::string text() const { return memory_.c_str(); }

 private:
  bool is_here() const;

  std::string memory_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  std::string failure_;  ///< Of posting.
};

}  // namespace tensorplay::distributed
