#include "runtime/store/store_connection.hpp"

#include "runtime/base/log.hpp"
#include "runtime/base/socket.hpp"
#include "runtime/store/wire_codec.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace tensorplay::store {
namespace {

using distributed::Deadline;
using distributed::DistNetworkError;
using distributed::SocketError;
using distributed::TimeoutError;

constexpr std::size_t kBufferBytes = 16 << 10;
constexpr std::size_t kGrowth = 1 << 20;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 33;  // no server holds more; a length beyond it is no length

std::string seconds_text(Deadline::Clock::duration time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g s", std::chrono::duration<double>(time).count());
  return text.data();
}

/// Why a server may close the connection on this request rather than answer.
std::string hint_for(std::string_view operation) {
  if (operation == "add") return " (a server does that when the value is not a number)";
  if (operation.starts_with("queue_")) return " (torch's server knows queues since 2.8, and only with libuv)";
  if (operation == "list_keys") return " (torch's server lists keys since 2.10)";
  if (operation == "barrier") return " (torch's server has barriers since 2.12)";
  return "";
}

}  // namespace

StoreConnection::StoreConnection(const std::string& host, std::uint16_t port)
    : host_(host), port_(port), endpoint_(base::format_host_port(host, port)), in_(kBufferBytes, '\0') {}

void StoreConnection::open(Deadline deadline) {
  in_begin_ = in_end_ = 0;
  spin_ = SpinBudget();
  awaits_first_byte_ = false;
  fd_ = base::connect_to(host_, port_, deadline);
  broken_by_.clear();
}

std::string StoreConnection::describe(const std::string& reason) const {
  std::string text = endpoint_ + ": " + operation_;
  if (!key_.empty()) text += " of " + key_;
  text += ": " + reason;
  // The server may have closed because of what came before and is never answered.
  if (!unanswered_.empty()) text += hint_for(unanswered_) + ", perhaps for the " + unanswered_ + " before it";
  return text + ", " + seconds_text(Deadline::Clock::now() - sent_at_) + " after it began";
}

void StoreConnection::close(const std::string& reason) {
  fd_.reset();
  broken_by_ = reason;
}

void StoreConnection::fail(const std::string& reason) {
  const std::string text = describe(reason);
  close(text);
  throw DistNetworkError(text);
}

/// Runs `action`; its network error is told again with all that is known here, and ends the connection.
template <typename Action>
auto StoreConnection::guarded(Action action) {
  try {
    return action();
  } catch (const TimeoutError& error) {
    close(describe("no answer"));
    throw TimeoutError(broken_by_);
  } catch (const SocketError& error) {
    close(describe(error.what()));
    throw SocketError(broken_by_);
  } catch (const DistNetworkError& error) {
    close(describe(error.what() + hint_for(operation_)));
    throw DistNetworkError(broken_by_);
  }
}

std::string& StoreConnection::begin(const char* operation, std::string_view key) {
  if (!fd_) {
    throw DistNetworkError(endpoint_ + ": " + operation +
                           ": the connection is closed since an earlier error: " + broken_by_);
  }
  if (awaits_first_byte_) {
    unanswered_ = operation_;
  } else {
    unanswered_.clear();
  }
  operation_ = operation;
  base::log::trace([&] { return endpoint_ + ": " + operation + (key.empty() ? "" : " " + std::string(key)); });
  key_.assign(key);
  sent_at_ = Deadline::Clock::now();
  out_.clear();
  return out_;
}

void StoreConnection::send(Deadline deadline) {
  awaits_first_byte_ = true;
  guarded([&] { base::send_all(fd_.get(), out_, deadline); });
}

void StoreConnection::send_more(std::string_view bytes, Deadline deadline) {
  guarded([&] { base::send_all(fd_.get(), bytes, deadline); });
}

bool StoreConnection::has_answer_by(Deadline deadline) {
  if (in_begin_ != in_end_) return true;
  return guarded([&] {
    try {
      fill(deadline);
      return true;
    } catch (const TimeoutError&) {
      return false;  // nothing has been read: the connection stays good
    }
  });
}

/// Receives at least one byte into the empty buffer.
void StoreConnection::fill(Deadline deadline) {
  in_begin_ = in_end_ = 0;
  const auto spin = awaits_first_byte_ ? spin_.for_request_at(sent_at_) : std::chrono::microseconds::zero();
  in_end_ = base::recv_some(fd_.get(), in_.data(), in_.size(), deadline, spin);
  if (in_end_ == 0) throw DistNetworkError("got 0 bytes. Connection was likely closed by the server");
  if (!awaits_first_byte_) return;
  const auto now = Deadline::Clock::now();
  spin_.answered(now, now - sent_at_);
  awaits_first_byte_ = false;
}

void StoreConnection::read_exact(char* into, std::size_t size, Deadline deadline) {
  while (size > 0) {
    if (in_begin_ == in_end_) {
      guarded([&] { fill(deadline); });
    }
    const std::size_t part = std::min(size, in_end_ - in_begin_);
    std::memcpy(into, in_.data() + in_begin_, part);
    in_begin_ += part;
    into += part;
    size -= part;
  }
}

std::uint8_t StoreConnection::read_u8(Deadline deadline) {
  char byte = 0;
  read_exact(&byte, 1, deadline);
  return static_cast<std::uint8_t>(byte);
}

std::uint32_t StoreConnection::read_u32(Deadline deadline) {
  std::array<char, 4> bytes{};
  read_exact(bytes.data(), bytes.size(), deadline);
  return get_u32(bytes.data());
}

std::uint64_t StoreConnection::read_u64(Deadline deadline) {
  std::array<char, 8> bytes{};
  read_exact(bytes.data(), bytes.size(), deadline);
  return get_u64(bytes.data());
}

std::string StoreConnection::read_bytes(Deadline deadline) {
  const std::uint64_t size = read_u64(deadline);
  if (size > kMostBytes) fail("the answer announces " + std::to_string(size) + " bytes: this is not a store's answer");
  std::string bytes;
  while (bytes.size() < size) {
    const std::size_t done = bytes.size();
    bytes.resize(done + std::min<std::uint64_t>(size - done, kGrowth));
    read_exact(bytes.data() + done, bytes.size() - done, deadline);
  }
  return bytes;
}

std::string StoreConnection::printable_rest() const {
  std::string text;
  for (std::size_t i = in_begin_; i < in_end_ && text.size() < 40; ++i) {
    if (in_[i] < ' ' || in_[i] > '~') break;
    text += in_[i];
  }
  return text;
}

}  // namespace tensorplay::store
