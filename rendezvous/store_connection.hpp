/// One connection to a store's server, as a coroutine uses it: connects, says hello, sends and receives, each within a
/// limit.
#pragma once

#include "runtime/base/socket.hpp"
#include "runtime/store/wire_codec.hpp"

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::store {
class Authenticator;
}

namespace tensorplay::rendezvous {

/// Every call throws std::system_error when the connection breaks, is closed, or the limit is over; then it has to be
/// connected again. Thread rules: the loop's thread; one coroutine at a time, but close() may come from anywhere there.
class StoreConnection {
 public:
  using Limit = std::optional<std::chrono::milliseconds>;  ///< nullopt: for ever.

  explicit StoreConnection(asio::io_context& loop);

  /// Tries the addresses one after the other, each for as long as `limit`.
  asio::awaitable<void> connect(const std::vector<base::SocketAddress>& addresses, std::chrono::milliseconds limit);

  /// Proves to each other that both know the secret, where there is one, and gives the server's answer.
  asio::awaitable<store::HelloReply> hello(const store::Hello& hello, const store::Authenticator* authenticator,
                                           Limit limit);

  asio::awaitable<void> send(std::string_view bytes, Limit limit);
  asio::awaitable<std::string> receive(std::size_t size, Limit limit);
  asio::awaitable<std::uint8_t> receive_u8(Limit limit);
  asio::awaitable<std::uint64_t> receive_u64(Limit limit);
  asio::awaitable<std::string> receive_bytes(Limit limit);  ///< With their length before them.

  /// This host's end, in digits; empty when there is none.
  std::string local_address() const;

  void close();

 private:
  void allow(Limit limit);

  asio::ip::tcp::socket socket_;
  std::shared_ptr<asio::steady_timer> watchdog_;
};

}  // namespace tensorplay::rendezvous
