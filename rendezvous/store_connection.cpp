#include "rendezvous/store_connection.hpp"

#include "runtime/store/authenticator.hpp"

#include <asio/read.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <cstring>
#include <fcntl.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace tensorplay::rendezvous {
namespace {

using asio::awaitable;
using asio::use_awaitable;
using asio::ip::tcp;

/// Orders are far smaller; what announces more is no order of ours.
constexpr std::uint64_t kMaxBytes = 256 << 20;
// A connection that only waits notices by these that its peer, or a gateway between, has forgotten it.
constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 5;
constexpr int kProbes = 3;

tcp::endpoint endpoint_of(const base::SocketAddress& address) {
  tcp::endpoint endpoint;
  std::memcpy(endpoint.data(), address.data(), address.size());
  endpoint.resize(address.size());
  return endpoint;
}

[[noreturn]] void throw_protocol_error() {
  throw std::system_error(std::make_error_code(std::errc::protocol_error));
}

void set_options(tcp::socket& socket) {
  const int fd = socket.native_handle();
  base::set_no_delay(fd);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kProbeSeconds, sizeof kProbeSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
}

}  // namespace

StoreConnection::StoreConnection(asio::io_context& loop)
    : socket_(loop), watchdog_(std::make_shared<asio::steady_timer>(loop)) {}

awaitable<void> StoreConnection::connect(const std::vector<base::SocketAddress>& addresses,
                                         std::chrono::milliseconds limit) {
  std::error_code last = std::make_error_code(std::errc::address_not_available);
  for (const auto& address : addresses) {
    close();
    const auto endpoint = endpoint_of(address);
    try {
      socket_.open(endpoint.protocol());
      ::fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
      allow(limit);
      co_await socket_.async_connect(endpoint, use_awaitable);
      allow(std::nullopt);
      set_options(socket_);
      co_return;
    } catch (const std::system_error& error) {
      last = error.code();
    }
  }
  throw std::system_error(last);
}

awaitable<store::HelloReply> StoreConnection::hello(const store::Hello& hello,
                                                    const store::Authenticator* authenticator, Limit limit) {
  std::string bytes;
  store::encode_validate(bytes);
  store::encode_check(bytes, {std::string(store::kExtensionProbeKey)});
  store::encode_hello(bytes, hello);
  co_await send(bytes, limit);
  if (co_await receive_u8(limit) != store::kReady) throw_protocol_error();  // a store, but none of ours
  store::HelloReply reply;
  reply.status = static_cast<store::HelloStatus>(co_await receive_u8(limit));
  reply.version = store::get_u32((co_await receive(4, limit)).data());
  reply.run_id = co_await receive_bytes(limit);
  reply.user = co_await receive_bytes(limit);
  reply.epoch = co_await receive_u64(limit);
  if (reply.status != store::HelloStatus::kProve) {
    // One that asks for no proof, when there is a secret, is not the store that was found.
    if (reply.status == store::HelloStatus::kWelcome && authenticator != nullptr) throw_protocol_error();
    co_return reply;
  }
  reply.server_nonce = co_await receive_bytes(limit);
  if (authenticator == nullptr) throw_protocol_error();
  store::HelloTranscript transcript{hello.run_id, hello.user, hello.agent, reply.server_nonce,
                                    authenticator->make_nonce()};
  bytes.clear();
  store::encode_prove(bytes, transcript.client_nonce, authenticator->client_proof(transcript));
  co_await send(bytes, limit);
  const auto status = static_cast<store::ProofStatus>(co_await receive_u8(limit));
  const auto proof = co_await receive_bytes(limit);
  if (status != store::ProofStatus::kProven ||
      !authenticator->is_equal(proof, authenticator->server_proof(transcript))) {
    throw_protocol_error();
  }
  reply.status = store::HelloStatus::kWelcome;
  co_return reply;
}

awaitable<void> StoreConnection::send(std::string_view bytes, Limit limit) {
  allow(limit);
  co_await asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()), use_awaitable);
  allow(std::nullopt);
}

awaitable<std::string> StoreConnection::receive(std::size_t size, Limit limit) {
  std::string bytes(size, '\0');
  allow(limit);
  co_await asio::async_read(socket_, asio::buffer(bytes), use_awaitable);
  allow(std::nullopt);
  co_return bytes;
}

awaitable<std::uint8_t> StoreConnection::receive_u8(Limit limit) {
  co_return static_cast<std::uint8_t>((co_await receive(1, limit))[0]);
}

awaitable<std::uint64_t> StoreConnection::receive_u64(Limit limit) {
  co_return store::get_u64((co_await receive(8, limit)).data());
}

awaitable<std::string> StoreConnection::receive_bytes(Limit limit) {
  const auto size = co_await receive_u64(limit);
  if (size > kMaxBytes) throw std::system_error(std::make_error_code(std::errc::message_size));
  co_return co_await receive(size, limit);
}

std::string StoreConnection::local_address() const {
  std::error_code error;
  const auto endpoint = socket_.local_endpoint(error);
  if (error) return {};
  return base::SocketAddress(endpoint.data(), static_cast<socklen_t>(endpoint.size())).host();
}

void StoreConnection::close() {
  allow(std::nullopt);
  std::error_code ignored;
  socket_.close(ignored);
}

void StoreConnection::allow(Limit limit) {
  watchdog_->cancel();
  if (!limit) {
    watchdog_->expires_at(std::chrono::steady_clock::time_point::max());
    return;
  }
  watchdog_->expires_after(*limit);
  watchdog_->async_wait([this, watchdog = std::weak_ptr(watchdog_)](const std::error_code& error) {
    const auto timer = watchdog.lock();
    // One that was cancelled when it was already on its way looks at the clock.
    if (error || !timer || timer->expiry() > std::chrono::steady_clock::now()) return;
    std::error_code ignored;
    socket_.close(ignored);
  });
}

}  // namespace tensorplay::rendezvous
