#pragma once

#include "runtime/base/fd.hpp"
#include "runtime/store/spin_budget.hpp"
#include "tensorplay/distributed/deadline.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace tensorplay::store {

/// The client's end of a store connection: sends one request, reads its answer, and knows what to say when that fails.
///
/// Any failure closes it, as a message half sent or half read cannot be resumed; the error names host, port, request,
/// key, time and reason, and every later call repeats that reason.
/// Thread rules: one user at a time. Ownership: owns its socket.
class StoreConnection {
 public:
  using Deadline = distributed::Deadline;

  /// Not connected yet.
  StoreConnection(const std::string& host, std::uint16_t port);

  /// Connects, trying again until the deadline; drops an earlier connection. Throws TimeoutError or SocketError.
  void open(Deadline deadline);

  /// Begins a request; append it to what this returns. `operation` must outlive the request and is what errors call
  /// it; `key` may be empty. Throws DistNetworkError when the connection is broken.
  std::string& begin(const char* operation, std::string_view key);

  /// Sends what was begun.
  void send(Deadline deadline);

  /// Adds `bytes` to what the server shall read, after the request has been sent.
  void send_more(std::string_view bytes, Deadline deadline);

  /// Whether a byte of the answer is there before the deadline.
  bool has_answer_by(Deadline deadline);

  std::uint8_t read_u8(Deadline deadline);
  std::uint32_t read_u32(Deadline deadline);
  std::uint64_t read_u64(Deadline deadline);
  std::int64_t read_i64(Deadline deadline) { return static_cast<std::int64_t>(read_u64(deadline)); }
  /// A length and its bytes. Memory grows with what arrives, not with what was announced.
  std::string read_bytes(Deadline deadline);

  /// What has arrived and was not read, as far as it is printable: to tell people who really answers there.
  std::string printable_rest() const;

  /// Closes and throws DistNetworkError.
  [[noreturn]] void fail(const std::string& reason);

  /// "host:port"
  const std::string& endpoint() const { return endpoint_; }
  /// The socket, -1 when closed: for error texts and tests.
  int fd() const { return fd_.get(); }

 private:
  void read_exact(char* into, std::size_t size, Deadline deadline);
  void fill(Deadline deadline);
  template <typename Action>
  auto guarded(Action action);
  std::string describe(const std::string& reason) const;
  void close(const std::string& reason);

  std::string host_;
  std::uint16_t port_;
  std::string endpoint_;
  base::UniqueFd fd_;
  std::string broken_by_ = "it was never opened";

  std::string out_;
  std::string in_;  ///< A fixed buffer, of which [begin, end) was received and not yet read.
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;

  const char* operation_ = "";
  std::string key_;
  std::string unanswered_;  ///< The request before, when it was one that gets no answer.
  Deadline::Clock::time_point sent_at_{};
  bool awaits_first_byte_ = false;
  SpinBudget spin_;
};

}  // namespace tensorplay::store
