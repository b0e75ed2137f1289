/// A TCPStore client that says exactly what a test tells it to, and nothing else.
#pragma once

#include "runtime/base/socket.hpp"
#include "runtime/store/wire_codec.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorplay::store::testing {

class RawClient {
 public:
  /// Connects and validates.
  explicit RawClient(std::uint16_t port, const std::string& host = "127.0.0.1")
      : fd_(base::connect_to(host, port, deadline())) {
    std::string bytes;
    encode_validate(bytes);
    send(bytes);
  }

  /// Connects and says nothing.
  static RawClient silent(std::uint16_t port) { return RawClient(base::connect_to("127.0.0.1", port, deadline())); }

  static base::Deadline deadline() { return base::Deadline::after(std::chrono::seconds(30)); }

  void send(std::string_view bytes) { base::send_all(fd_.get(), bytes, deadline()); }

  std::string receive(std::size_t size) {
    std::string bytes(size, '\0');
    base::recv_exact(fd_.get(), bytes.data(), size, deadline());
    return bytes;
  }
  std::uint8_t receive_u8() { return static_cast<std::uint8_t>(receive(1)[0]); }
  std::uint32_t receive_u32() { return get_u32(receive(4).data()); }
  std::uint64_t receive_u64() { return get_u64(receive(8).data()); }
  std::int64_t receive_i64() { return static_cast<std::int64_t>(receive_u64()); }
  std::string receive_value() { return receive(receive_u64()); }

  /// Whether the server closes this connection, with nothing more to read but what is dropped here.
  bool is_closed_by_server() {
    char buffer[4096];
    try {
      while (base::recv_some(fd_.get(), buffer, sizeof buffer, deadline()) > 0) {
      }
    } catch (const distributed::TimeoutError&) {
      return false;
    } catch (const distributed::DistNetworkError&) {
      // Reset: closed while it still had something of ours to read.
    }
    return true;
  }

  /// Whether there is nothing to read now.
  bool is_quiet() { return !base::wait_readable(fd_.get(), base::Deadline::after(std::chrono::milliseconds(0))); }

  void set(std::string_view key, std::string_view value) {
    std::string bytes;
    encode_set(bytes, key, value);
    send(bytes);
  }
  std::string get(std::string_view key) {
    std::string bytes;
    encode_get(bytes, key);
    send(bytes);
    return receive_value();
  }
  std::int64_t add(std::string_view key, std::int64_t delta) {
    std::string bytes;
    encode_add(bytes, key, delta);
    send(bytes);
    return receive_i64();
  }
  /// Returns once everything sent before has been served.
  void ping() {
    std::string bytes;
    encode_ping(bytes, 42);
    send(bytes);
    if (receive_u32() != 42) throw distributed::DistNetworkError("the pong is not the ping's");
  }
  HelloReply hello(const Hello& hello) {
    std::string bytes;
    encode_hello(bytes, hello);
    send(bytes);
    HelloReply reply;
    reply.status = static_cast<HelloStatus>(receive_u8());
    reply.version = receive_u32();
    reply.run_id = receive_value();
    reply.user = receive_value();
    reply.epoch = receive_u64();
    return reply;
  }

  int fd() const noexcept { return fd_.get(); }
  void close() noexcept { fd_.reset(); }

 private:
  explicit RawClient(base::UniqueFd fd) : fd_(std::move(fd)) {}

  base::UniqueFd fd_;
};

}  // namespace tensorplay::store::testing
