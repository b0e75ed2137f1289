#include "runtime/base/socket.hpp"

#include "tensorplay/distributed/errors.hpp"
#include "tests/support/catch.hpp"

#include <array>
#include <future>
#include <thread>
#include <unistd.h>

#include <sys/socket.h>

using namespace std::chrono_literals;
using namespace tensorplay::base;
using tensorplay::distributed::DistNetworkError;
using tensorplay::distributed::InvalidArgument;
using tensorplay::distributed::SocketError;
using tensorplay::distributed::TimeoutError;

namespace {

std::uint16_t port_of(const UniqueFd& fd) {
  return SocketAddress::of_local_end(fd.get()).port();
}

UniqueFd accept_one(const UniqueFd& listener) {
  REQUIRE(wait_readable(listener.get(), Deadline::after(10s)));
  return UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

std::array<UniqueFd, 2> connected_pair() {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

template <typename Call>
std::string text_of_error(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("host and port are read in every way people write them") {
  REQUIRE(parse_host_port("n1") == HostPort{"n1", std::nullopt});
  REQUIRE(parse_host_port("n1:29400") == HostPort{"n1", 29400});
  REQUIRE(parse_host_port("10.0.0.1:0") == HostPort{"10.0.0.1", 0});
  REQUIRE(parse_host_port("[::1]:29500") == HostPort{"::1", 29500});
  REQUIRE(parse_host_port("[fe80::1%eth0]:1") == HostPort{"fe80::1%eth0", 1});
  REQUIRE(parse_host_port("[fe80::1%eth0]") == HostPort{"fe80::1%eth0", std::nullopt});
  REQUIRE(parse_host_port("2001:db8::7") == HostPort{"2001:db8::7", std::nullopt});
}

TEST_CASE("a malformed address is refused with what is wrong with it") {
  for (const auto* text : {"", ":1", "n1:", "n1:x", "n1:65536", "n1:-1", "[::1", "[::1]x", "[]:1", "n1:1x"}) {
    INFO(text);
    REQUIRE_THROWS_AS(parse_host_port(text), InvalidArgument);
  }
  REQUIRE(text_of_error([] { parse_host_port("n1:two"); }).find("'two' is not a port") != std::string::npos);
}

TEST_CASE("an IPv6 host is printed in brackets so that its port can be told from it") {
  REQUIRE(format_host_port("::1", 7) == "[::1]:7");
  REQUIRE(format_host_port("n1", 7) == "n1:7");
  REQUIRE(SocketAddress::resolve("127.0.0.1", 80).front().to_string() == "127.0.0.1:80");
  REQUIRE(SocketAddress::resolve("::1", 80).front().to_string() == "[::1]:80");
  REQUIRE(SocketAddress::resolve("::ffff:10.0.0.1", 80).front().host() == "10.0.0.1");
}

TEST_CASE("a zone survives from text to address and back") {
  REQUIRE(SocketAddress::resolve("fe80::1%lo", 1).front().host() == "fe80::1%lo");
}

TEST_CASE("loopback is told from other addresses, mapped ones included") {
  for (const auto* text : {"127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"}) {
    REQUIRE(SocketAddress::resolve(text, 1).front().is_loopback());
  }
  for (const auto* text : {"10.0.0.1", "0.0.0.0", "fe80::1", "::ffff:10.0.0.1"}) {
    REQUIRE_FALSE(SocketAddress::resolve(text, 1).front().is_loopback());
  }
}

TEST_CASE("port 0 binds a free port and a connection to it carries bytes both ways") {
  for (const std::string host : {"127.0.0.1", "::1", "localhost"}) {
    INFO(host);
    const auto listener = listen_on(host, 0);
    REQUIRE(port_of(listener) != 0);
    const auto client = connect_to(host, port_of(listener), Deadline::after(10s));
    const auto server = accept_one(listener);
    send_all(client.get(), "ping", Deadline::after(10s));
    char got[4];
    recv_exact(server.get(), got, 4, Deadline::after(10s));
    REQUIRE(std::string(got, 4) == "ping");
    send_all(server.get(), "pong", Deadline::after(10s));
    recv_exact(client.get(), got, 4, Deadline::after(10s), 50us);
    REQUIRE(std::string(got, 4) == "pong");
  }
}

TEST_CASE("the IPv6 wildcard serves IPv4 clients too") {
  const auto listener = listen_on("::", 0);
  const auto client = connect_to("127.0.0.1", port_of(listener), Deadline::after(10s));
  const auto server = accept_one(listener);
  REQUIRE(SocketAddress::of_peer(server.get()).host() == "127.0.0.1");
}

TEST_CASE("a taken port is refused in the words that scripts look for") {
  const auto listener = listen_on("127.0.0.1", 0);
  const auto text = text_of_error([&] { listen_on("127.0.0.1", port_of(listener)); });
  REQUIRE(text.find("Address already in use") != std::string::npos);
  REQUIRE(text.find("127.0.0.1:" + std::to_string(port_of(listener))) != std::string::npos);
}

TEST_CASE("an inherited socket becomes a listener whether or not it listens already") {
  UniqueFd bound(::socket(AF_INET, SOCK_STREAM, 0));
  const auto address = SocketAddress::resolve("127.0.0.1", 0).front();
  REQUIRE(::bind(bound.get(), address.data(), address.size()) == 0);
  auto listener = adopt_listener(std::move(bound));
  listener = adopt_listener(std::move(listener));
  const auto client = connect_to("127.0.0.1", port_of(listener), Deadline::after(10s));
  REQUIRE(accept_one(listener));
}

TEST_CASE("a descriptor that cannot listen is refused") {
  REQUIRE_THROWS_AS(adopt_listener(UniqueFd(::socket(AF_INET, SOCK_DGRAM, 0))), SocketError);
  REQUIRE_THROWS_AS(adopt_listener(UniqueFd(::dup(0))), SocketError);
}

TEST_CASE("connecting waits for a listener that comes late") {
  auto placeholder = listen_on("127.0.0.1", 0);
  const auto port = port_of(placeholder);
  placeholder.reset();
  auto connecting = std::async(std::launch::async, [&] { return connect_to("127.0.0.1", port, Deadline::after(20s)); });
  // Not ready while refused: the attempt goes on instead of throwing.
  REQUIRE(connecting.wait_for(30ms) == std::future_status::timeout);
  const auto listener = listen_on("127.0.0.1", port);
  REQUIRE(connecting.get());
}

TEST_CASE("a connect that gives up names host, port, elapsed time and reason") {
  auto placeholder = listen_on("127.0.0.1", 0);
  const auto port = port_of(placeholder);
  placeholder.reset();
  const auto begin = Deadline::Clock::now();
  const auto text = text_of_error([&] { connect_to("127.0.0.1", port, Deadline::after(100ms)); });
  REQUIRE(Deadline::Clock::now() - begin < 5s);
  REQUIRE(text.find("127.0.0.1:" + std::to_string(port)) != std::string::npos);
  REQUIRE(text.find("0.1 s") != std::string::npos);
  REQUIRE(text.find("Connection refused (errno 111)") != std::string::npos);
  REQUIRE_THROWS_AS(connect_to("127.0.0.1", port, Deadline::after(0ms)), TimeoutError);
}

TEST_CASE("a name that does not resolve is a time-out that says so") {
  const auto text = text_of_error([] { connect_to("no-such-host.invalid", 1, Deadline::after(50ms)); });
  REQUIRE(text.find("'no-such-host.invalid' does not resolve") != std::string::npos);
}

TEST_CASE("an address that can never be reached fails at once") {
  // Class E is not routable: connect(2) itself fails.
  const auto begin = Deadline::Clock::now();
  REQUIRE_THROWS_AS(connect_to("255.255.255.255", 1, Deadline::after(60s)), SocketError);
  REQUIRE(Deadline::Clock::now() - begin < 10s);
}

TEST_CASE("receiving gives up at the deadline and tells a closed peer from a slow one") {
  auto [a, b] = connected_pair();
  char buffer[8];
  REQUIRE_THROWS_AS(recv_exact(a.get(), buffer, 1, Deadline::after(10ms)), TimeoutError);
  send_all(b.get(), "abc", Deadline::after(1s));
  b.reset();
  const auto text = text_of_error([&] { recv_exact(a.get(), buffer, 8, Deadline::after(10s)); });
  REQUIRE(text.find("5 of 8 bytes") != std::string::npos);
  REQUIRE(recv_some(a.get(), buffer, 8, Deadline::after(10s)) == 0);
}

TEST_CASE("sending to a reader that never reads gives up at the deadline") {
  auto [a, b] = connected_pair();
  const std::string much(64 << 20, 'x');
  REQUIRE_THROWS_AS(send_all(a.get(), much, Deadline::after(20ms)), TimeoutError);
}

TEST_CASE("sending to a closed peer is an error and not a signal") {
  auto [a, b] = connected_pair();
  b.reset();
  REQUIRE_THROWS_AS(send_all(a.get(), "x", Deadline::after(1s)), DistNetworkError);
}

TEST_CASE("a message larger than every buffer arrives whole") {
  auto pair = connected_pair();
  const std::string sent(8 << 20, 'y');
  std::thread writer([&] { send_all(pair[0].get(), sent, Deadline::after(20s)); });
  std::string got(sent.size(), '\0');
  recv_exact(pair[1].get(), got.data(), got.size(), Deadline::after(20s));
  writer.join();
  REQUIRE(got == sent);
}
