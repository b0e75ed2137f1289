#include "runtime/base/socket.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace tensorplay::base {

using distributed::DistNetworkError;
using distributed::InvalidArgument;
using distributed::SocketError;
using distributed::TimeoutError;
using Clock = Deadline::Clock;

namespace {

std::string errno_text(int error) {
  return std::string(std::strerror(error)) + " (errno " + std::to_string(error) + ")";
}

std::uint16_t parse_port(std::string_view digits, std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port > 65535) {
    throw InvalidArgument("'" + std::string(text) + "': '" + std::string(digits) +
                          "' is not a port; give a number from 0 to 65535");
  }
  return static_cast<std::uint16_t>(port);
}

UniqueFd try_listen(const SocketAddress& address) {
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6) {
    // Only the wildcard serves IPv4 too; elsewhere the option changes nothing.
    const int off = 0;
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(fd.get(), address.data(), address.size()) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) fd.reset();
  return fd;
}

}  // namespace

HostPort parse_host_port(std::string_view text) {
  if (text.empty()) throw InvalidArgument("an empty address; give host or host:port");
  if (text.front() == '[') {
    const auto close = text.find(']');
    if (close == std::string_view::npos) throw InvalidArgument("'" + std::string(text) + "': the ']' is missing");
    HostPort result{std::string(text.substr(1, close - 1)), std::nullopt};
    const auto rest = text.substr(close + 1);
    if (result.host.empty()) throw InvalidArgument("'" + std::string(text) + "': nothing between the brackets");
    if (rest.empty()) return result;
    if (rest.front() != ':') {
      throw InvalidArgument("'" + std::string(text) + "': only ':port' may follow the ']'");
    }
    result.port = parse_port(rest.substr(1), text);
    return result;
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) {
    return {std::string(text), std::nullopt};
  }
  if (colon == 0) throw InvalidArgument("'" + std::string(text) + "': the host is missing; give host:port");
  return {std::string(text.substr(0, colon)), parse_port(text.substr(colon + 1), text)};
}

std::string format_host_port(std::string_view host, std::uint16_t port) {
  const bool needs_brackets = host.find(':') != std::string_view::npos;
  std::string text;
  if (needs_brackets) text += '[';
  text += host;
  if (needs_brackets) text += ']';
  text += ':';
  return text += std::to_string(port);
}

SocketAddress::SocketAddress(const sockaddr* address, socklen_t size) : size_(size) {
  if (size > sizeof storage_) throw InvalidArgument("a socket address of " + std::to_string(size) + " bytes");
  std::memcpy(&storage_, address, size);
}

std::vector<SocketAddress> SocketAddress::resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  const auto service = std::to_string(port);
  addrinfo* found = nullptr;
  int error = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
  if (error == EAI_NONAME) {
    hints.ai_flags = AI_NUMERICSERV;
    error = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
  }
  if (error != 0) {
    const auto reason = error == EAI_SYSTEM ? errno_text(errno) : std::string(::gai_strerror(error));
    throw SocketError("the name '" + host + "' does not resolve: " + reason);
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    if (a->ai_family == AF_INET || a->ai_family == AF_INET6) addresses.emplace_back(a->ai_addr, a->ai_addrlen);
  }
  ::freeaddrinfo(found);
  if (addresses.empty()) throw SocketError("the name '" + host + "' has no IPv4 or IPv6 address");
  return addresses;
}

SocketAddress SocketAddress::of_local_end(int fd) {
  SocketAddress address;
  address.size_ = sizeof address.storage_;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage_), &address.size_) != 0) {
    throw SocketError("the socket's own address: " + errno_text(errno));
  }
  return address;
}

SocketAddress SocketAddress::of_peer(int fd) {
  SocketAddress address;
  address.size_ = sizeof address.storage_;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage_), &address.size_) != 0) {
    throw SocketError("the peer's address: " + errno_text(errno));
  }
  return address;
}

SocketAddress SocketAddress::of_peer_or_empty(int fd) noexcept {
  SocketAddress address;
  address.size_ = sizeof address.storage_;
  const bool is_known = ::getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage_), &address.size_) == 0;
  return is_known ? address : SocketAddress();
}

std::uint16_t SocketAddress::port() const noexcept {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage_).sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage_).sin6_port);
  return 0;
}

bool SocketAddress::is_loopback() const noexcept {
  if (family() == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(storage_).sin_addr.s_addr) >> 24 == 127;
  }
  if (family() != AF_INET6) return false;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage_).sin_addr, text, sizeof text);
    return text;
  }
  if (family() != AF_INET6) return "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage_);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    return text;
  }
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  if (v6.sin6_scope_id == 0) return text;
  char zone[IF_NAMESIZE] = "";
  const bool is_named = ::if_indextoname(v6.sin6_scope_id, zone) != nullptr;
  return std::string(text) + "%" + (is_named ? std::string(zone) : std::to_string(v6.sin6_scope_id));
}

UniqueFd listen_on(const std::string& host, std::uint16_t port) {
  const auto addresses = SocketAddress::resolve(host, port);
  int first_error = 0;
  for (const auto& address : addresses) {
    if (auto fd = try_listen(address)) return fd;
    if (first_error == 0) first_error = errno;
  }
  if (host == "::" && (first_error == EAFNOSUPPORT || first_error == EADDRNOTAVAIL)) return listen_on("0.0.0.0", port);
  throw SocketError("cannot listen on " + format_host_port(host, port) + ": " + errno_text(first_error));
}

UniqueFd adopt_listener(UniqueFd fd) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    throw SocketError("descriptor " + std::to_string(fd.get()) + " cannot be a listener: " + errno_text(errno));
  }
  if (type != SOCK_STREAM) {
    throw SocketError("descriptor " + std::to_string(fd.get()) + " cannot be a listener: it is not a stream socket");
  }
  // Listening twice is allowed and only sets the backlog.
  if (::listen(fd.get(), SOMAXCONN) != 0) {
    throw SocketError("cannot listen on descriptor " + std::to_string(fd.get()) + ": " + errno_text(errno));
  }
  set_blocking(fd.get(), false);
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  return fd;
}

void send_all(int fd, std::string_view data, Deadline deadline) {
  const auto total = data.size();
  while (!data.empty()) {
    const auto sent = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      data.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      throw DistNetworkError("sending " + std::to_string(total) + " bytes: " + errno_text(errno));
    }
    pollfd waited{fd, POLLOUT, 0};
    const int ready = ::poll(&waited, 1, deadline.poll_timeout_ms());
    if (ready < 0 && errno != EINTR) throw SocketError("waiting to send: " + errno_text(errno));
    if (ready == 0 && deadline.has_passed()) {
      throw TimeoutError("timed out sending: " + std::to_string(data.size()) + " of " + std::to_string(total) +
                         " bytes were not taken");
    }
  }
}

std::size_t recv_some(int fd, void* buffer, std::size_t size, Deadline deadline, std::chrono::microseconds spin) {
  const bool may_spin = spin.count() > 0;
  const auto spin_end = may_spin ? Clock::now() + spin : Clock::time_point();
  while (true) {
    const auto got = ::recv(fd, buffer, size, MSG_DONTWAIT);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) throw DistNetworkError("receiving: " + errno_text(errno));
    if (may_spin && Clock::now() < spin_end) continue;
    if (!wait_readable(fd, deadline)) throw TimeoutError("timed out receiving");
  }
}

void recv_exact(int fd, void* buffer, std::size_t size, Deadline deadline, std::chrono::microseconds spin) {
  auto* next = static_cast<char*>(buffer);
  for (std::size_t left = size; left > 0;) {
    const auto got = recv_some(fd, next, left, deadline, spin);
    if (got == 0) {
      throw DistNetworkError("the peer closed the connection with " + std::to_string(left) + " of " +
                             std::to_string(size) + " bytes still to come");
    }
    next += got;
    left -= got;
  }
}

bool wait_readable(int fd, Deadline deadline) {
  while (true) {
    pollfd waited{fd, POLLIN, 0};
    const int ready = ::poll(&waited, 1, deadline.poll_timeout_ms());
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw SocketError("waiting to receive: " + errno_text(errno));
    if (deadline.has_passed()) return false;
  }
}

void set_no_delay(int fd) noexcept {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void set_blocking(int fd, bool is_blocking) {
  const int flags = ::fcntl(fd, F_GETFL);
  const int wanted = is_blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
  if (flags < 0 || ::fcntl(fd, F_SETFL, wanted) != 0) throw SocketError("a socket's flags: " + errno_text(errno));
}

}  // namespace tensorplay::base
