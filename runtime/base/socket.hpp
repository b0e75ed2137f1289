/// Stream sockets: addresses, listening, connecting, and moving whole messages under a deadline.
///
/// Every call that may block takes a Deadline and names in its error what it was doing, for how long, and why it
/// failed. Sockets are close-on-exec, SIGPIPE is never raised, Nagle's delay is off.
/// Thread rules: free functions on descriptors; two threads may use different descriptors, or one the two directions
/// of the same. Ownership: a returned UniqueFd is the caller's; functions that take an int borrow it.
#pragma once

#include "runtime/base/fd.hpp"
#include "tensorplay/distributed/deadline.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

namespace tensorplay::base {

using distributed::Deadline;

/// A host and perhaps a port, as people write them. Brackets are gone, a zone (`fe80::1%eth0`) stays in the host.
struct HostPort {
  std::string host;
  std::optional<std::uint16_t> port;
  bool operator==(const HostPort&) const = default;
};

/// Reads `host`, `host:port`, `1.2.3.4:port`, `[v6]`, `[v6%zone]:port`, and a bare `v6` (two colons or more, so without
/// a port). Throws InvalidArgument saying what is wrong with the text.
HostPort parse_host_port(std::string_view text);

/// The reverse: brackets around anything with a colon.
std::string format_host_port(std::string_view host, std::uint16_t port);

/// An IPv4 or IPv6 address with its port: a value.
class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t size);

  /// All addresses of a literal or a name, in the resolver's order. Literals never reach the resolver. A name that does
  /// not resolve throws SocketError. Blocks for as long as the resolver does.
  static std::vector<SocketAddress> resolve(const std::string& host, std::uint16_t port);

  static SocketAddress of_local_end(int fd);  ///< Throws SocketError.
  static SocketAddress of_peer(int fd);       ///< Throws SocketError.
  /// For messages: an address without a family, whose text is "" and port 0, when the peer is gone already.
  static SocketAddress of_peer_or_empty(int fd) noexcept;

  int family() const noexcept { return storage_.ss_family; }
  std::uint16_t port() const noexcept;
  bool is_loopback() const noexcept;
  /// The address alone in digits, with its zone where it has one; an IPv4-mapped IPv6 address is given as IPv4.
  std::string host() const;
  std::string to_string() const { return format_host_port(host(), port()); }

  const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const noexcept { return size_; }

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

/// A non-blocking listening socket at `host` (a name or literal; `::` means all of IPv6 and IPv4, and all of IPv4 where
/// there is no IPv6) and `port` (0: any free one). Throws SocketError; the text of a taken port holds "Address already
/// in use", for which scripts search.
UniqueFd listen_on(const std::string& host, std::uint16_t port);

/// Makes a socket that somebody else bound into a non-blocking listening socket. Throws SocketError when it is not a
/// stream socket or cannot listen.
UniqueFd adopt_listener(UniqueFd fd);

/// How to space out the attempts of connect_to.
struct RetryPacing {
  std::chrono::milliseconds first{5};     ///< Before the second attempt; half to one and a half of it, at random.
  double growth = 1.5;                    ///< Each pause is longer by this factor ...
  std::chrono::milliseconds most{1'000};  ///< ... up to this one.
};

/// Connects, trying all addresses of `host`, and tries again until the deadline where waiting can help: refused, reset,
/// timed out, host unreachable, name unknown. Returns a blocking socket. Throws TimeoutError when the deadline passed
/// and SocketError when waiting cannot help; both name host, port, elapsed time and the last reason.
UniqueFd connect_to(const std::string& host, std::uint16_t port, Deadline deadline, RetryPacing pacing = {});

/// Sends all of `data`. Throws TimeoutError at the deadline, DistNetworkError when the connection is gone; after either
/// the stream is broken in mid-message: close it. Works on blocking and non-blocking sockets.
void send_all(int fd, std::string_view data, Deadline deadline);

/// Receives exactly `size` bytes; throws as send_all, and DistNetworkError when the peer closes before that. Looks
/// without sleeping for up to `spin` first: waking a sleeping thread costs more than a short wait.
void recv_exact(int fd, void* buffer, std::size_t size, Deadline deadline, std::chrono::microseconds spin = {});

/// Receives what is there, at least one byte and at most `size`; 0 when the peer has closed. Throws as recv_exact.
std::size_t recv_some(int fd, void* buffer, std::size_t size, Deadline deadline, std::chrono::microseconds spin = {});

/// Whether `fd` has something to read (data, end or error) before the deadline. Throws SocketError.
bool wait_readable(int fd, Deadline deadline);

void set_no_delay(int fd) noexcept;
void set_blocking(int fd, bool is_blocking);  ///< Throws SocketError.

}  // namespace tensorplay::base
