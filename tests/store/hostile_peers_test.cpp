// What strangers, scanners, slow and broken clients can do to a server: lose their own connection.
#include "runtime/store/request_parser.hpp"
#include "runtime/store/store_service.hpp"
#include "runtime/store/tcp_store_server.hpp"
#include "tests/store/raw_client.hpp"
#include "tests/store/until.hpp"
#include "tests/support/catch.hpp"

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <poll.h>
#include <unistd.h>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>

using namespace std::chrono_literals;
using namespace tensorplay::store;
using tensorplay::base::Deadline;
using tensorplay::base::UniqueFd;
using tensorplay::store::testing::RawClient;
using tensorplay::store::testing::until;

namespace {

std::chrono::nanoseconds process_cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// The CPU time that this process uses while nobody does anything for 200 ms.
std::chrono::nanoseconds idle_cpu_time() {
  const auto before = process_cpu_time();
  ::poll(nullptr, 0, 200);
  return process_cpu_time() - before;
}

std::string header(Opcode opcode, std::uint64_t length) {
  std::string bytes;
  put_u8(bytes, static_cast<std::uint8_t>(opcode));
  put_u64(bytes, length);
  return bytes;
}

std::string wait_for(const std::string& key) {
  std::string bytes;
  encode_wait(bytes, {key});
  return bytes;
}

/// Lowers how many descriptors this process may have, until it goes.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit lower = before_;
    lower.rlim_cur = limit;
    ::setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("a half-sent query stalls nobody") {
  TCPStoreServer server({});
  std::vector<RawClient> stuck;
  std::string query;
  encode_set(query, "/k", "value");
  for (std::size_t cut = 0; cut < query.size(); ++cut) {
    stuck.emplace_back(server.port());
    stuck.back().send(query.substr(0, cut));
  }
  stuck.push_back(RawClient::silent(server.port()));
  stuck.back().send(std::string("\0\xCE", 2));
  RawClient client(server.port());
  REQUIRE(client.add("/n", 1) == 1);
  // And each of them may go on where it stopped.
  for (std::size_t cut = 0; cut < query.size(); ++cut) {
    stuck[cut].send(query.substr(cut));
    REQUIRE(stuck[cut].get("/k") == "value");
  }
}

TEST_CASE("a query sent byte by byte is served like any other") {
  TCPStoreServer server({});
  RawClient client(server.port());
  std::string bytes;
  encode_multi_set(bytes, {"/a", "/b"}, {"1", "2"});
  encode_multi_get(bytes, {"/a", "/b"});
  for (const char byte : bytes) client.send({&byte, 1});
  REQUIRE(client.receive_value() == "1");
  REQUIRE(client.receive_value() == "2");
}

TEST_CASE("a port scan, a wrong magic, an unknown opcode and a giant length each cost their own connection only") {
  TCPStoreServer server({});
  RawClient client(server.port());
  client.set("/k", "v");
  for (const std::string garbage :
       {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "SSH-2.0-OpenSSH\r\n", "\x16\x03\x01\x02", "\x01"}) {
    auto scanner = RawClient::silent(server.port());
    scanner.send(garbage);
    REQUIRE(scanner.is_closed_by_server());
  }
  auto wrong = RawClient::silent(server.port());
  wrong.send(std::string("\0\xCE\xF7\x85\x3D", 5));
  REQUIRE(wrong.is_closed_by_server());

  for (const auto& query :
       {std::string(1, '\x13'), std::string(1, '\xE7'), std::string(1, '\xFF'), header(Opcode::kGet, 1ull << 62),
        header(Opcode::kWait, ~0ull), header(Opcode::kSet, kMaxKeyBytes + 1), header(Opcode::kMultiSet, ~0ull)}) {
    RawClient hostile(server.port());
    hostile.send(query);
    REQUIRE(hostile.is_closed_by_server());
  }
  REQUIRE(client.get("/k") == "v");
  REQUIRE(until([&] { return server.connection_count() == 1; }));
}

TEST_CASE("an add to something that is no number closes the client that asked, as with PyTorch's server") {
  TCPStoreServer server({});
  RawClient other(server.port());
  other.set("/n", "many");
  RawClient client(server.port());
  std::string bytes;
  encode_add(bytes, "/n", 1);
  other.ping();
  client.send(bytes);
  REQUIRE(client.is_closed_by_server());
  REQUIRE(other.get("/n") == "many");
}

TEST_CASE("a request behind an outstanding wait closes the connection, and a cancel does not") {
  TCPStoreServer server({});
  RawClient client(server.port());
  std::string cancel;
  encode_cancel_wait(cancel);
  client.send(wait_for("/never"));
  client.send(cancel);
  REQUIRE(client.receive_u8() == kWaitCanceled);
  client.send(cancel);
  REQUIRE(client.receive_u8() == kWaitCanceled);
  client.send(wait_for("/never"));
  std::string bytes;
  encode_get(bytes, "/k");
  client.send(bytes);
  REQUIRE(client.is_closed_by_server());
  REQUIRE(until([&] { return server.waiter_count() == 0; }));
}

TEST_CASE("a client that goes away takes its wait with it") {
  TCPStoreServer server({});
  {
    RawClient client(server.port());
    client.send(wait_for("/never"));
    REQUIRE(until([&] { return server.waiter_count() == 1; }));
  }
  REQUIRE(until([&] { return server.waiter_count() == 0; }));
  REQUIRE(until([&] { return server.connection_count() == 0; }));
}

TEST_CASE("a reader that never reads is closed at the limit and costs bounded memory") {
  TCPStoreServer server({});
  RawClient other(server.port());
  other.set("/big", std::string(1 << 20, 'b'));
  RawClient hostile(server.port());
  std::string bytes;
  encode_get(bytes, "/big");
  // More is asked for than the limit and all socket buffers hold. The server closes in the middle of it.
  try {
    for (int i = 0; i < 200; ++i) {
      hostile.send(bytes);
      other.ping();
    }
  } catch (const tensorplay::distributed::DistNetworkError&) {
  }
  REQUIRE(until([&] { return server.connection_count() == 1; }));
  REQUIRE(other.get("/big").size() == 1 << 20);
}

TEST_CASE("a slow reader gets every byte of what it asked for") {
  TCPStoreServer server({});
  RawClient client(server.port());
  std::string expected;
  for (int i = 0; i < 8; ++i) client.set("/k" + std::to_string(i), std::string(1 << 20, static_cast<char>('a' + i)));
  std::string bytes;
  for (int i = 0; i < 8; ++i) encode_get(bytes, "/k" + std::to_string(i));
  client.send(bytes);
  RawClient other(server.port());
  other.ping();
  for (int i = 0; i < 8; ++i) REQUIRE(client.receive_value() == std::string(1 << 20, static_cast<char>('a' + i)));
}

TEST_CASE("an idle server uses no CPU, with clients connected, waiting, half-heard and unread") {
  TCPStoreServer server({});
  RawClient idle(server.port());
  idle.ping();
  RawClient waiting(server.port());
  waiting.send(wait_for("/never"));
  RawClient half(server.port());
  half.send(header(Opcode::kSet, 100));
  RawClient unread(server.port());
  unread.set("/big", std::string(kMaxPayloadBytes, 'x'));
  std::string bytes;
  encode_get(bytes, "/big");
  unread.send(bytes);
  REQUIRE(until([&] { return server.waiter_count() == 1; }));
  idle.ping();
  // A few milliseconds for the test's own calls; a spin would take all 200.
  REQUIRE(until([&] { return idle_cpu_time() < 5ms; }));
}

TEST_CASE("more clients than the limit are turned away and the others are served") {
  TCPStoreServerOptions options;
  options.max_connections = 3;
  TCPStoreServer server(std::move(options));
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port());
    clients.back().ping();
  }
  auto fourth = RawClient::silent(server.port());
  REQUIRE(fourth.is_closed_by_server());
  for (auto& client : clients) client.ping();
  clients.pop_back();
  REQUIRE(until([&] { return server.connection_count() == 2; }));
  RawClient(server.port()).ping();
}

TEST_CASE("a server out of descriptors serves those it has, does not spin, and recovers") {
  TCPStoreServer server({});
  RawClient client(server.port());
  client.ping();
  std::vector<RawClient> clients;
  {
    // Room for the near end of a connection but not for the server's.
    const int next = ::dup(0);
    ::close(next);
    const DescriptorLimit limit(static_cast<rlim_t>(next) + 20);
    std::size_t turned_away = 0;
    for (int i = 0; i < 40 && turned_away < 3; ++i) {
      try {
        auto late = RawClient::silent(server.port());
        std::string bytes;
        encode_validate(bytes);
        encode_ping(bytes, 42);
        late.send(bytes);
        late.receive_u32();
        clients.push_back(std::move(late));
      } catch (const tensorplay::distributed::DistNetworkError&) {
        ++turned_away;
      }
    }
    REQUIRE(turned_away == 3);
    client.ping();
    REQUIRE(until([&] { return idle_cpu_time() < 5ms; }));
  }
  clients.clear();
  RawClient(server.port()).ping();
}

TEST_CASE("two thousand clients that wait for one key are all released by one set") {
  TCPStoreServer server({});
  std::vector<RawClient> clients;
  for (int i = 0; i < 2000; ++i) {
    clients.emplace_back(server.port());
    clients.back().send(wait_for("/go"));
  }
  REQUIRE(until([&] { return server.waiter_count() == 2000; }));
  RawClient(server.port()).set("/go", "");
  for (auto& client : clients) REQUIRE(client.receive_u8() == kStopWaiting);
}

TEST_CASE("a hello for another job is answered with whom it has met, and then closed") {
  TCPStoreServerOptions options;
  options.has_agent_table = true;
  options.run_id = "job7";
  options.user = "ada";
  options.epoch = 4;
  TCPStoreServer server(std::move(options));
  RawClient stranger(server.port());
  const auto reply = stranger.hello({1, Role::kAgent, "job8", "bob", "n1", 4});
  REQUIRE(reply.status == HelloStatus::kOtherRun);
  REQUIRE(reply.run_id == "job7");
  REQUIRE(reply.user == "ada");
  REQUIRE(reply.epoch == 4);
  REQUIRE(stranger.is_closed_by_server());
}

namespace {

/// A server in a process of its own, which can be stopped. It writes a byte to `fired` when a will fires.
struct StoppableServer {
  StoppableServer() {
    int port_pipe[2];
    int fired_pipe[2];
    REQUIRE(::pipe(port_pipe) == 0);
    REQUIRE(::pipe(fired_pipe) == 0);
    pid = ::fork();
    if (pid == 0) {
      TCPStoreServerOptions options;
      options.has_agent_table = true;
      options.user = "ada";
      TCPStoreServer server(std::move(options));
      server.on_push(kInbox, [&] { [[maybe_unused]] const auto n = ::write(fired_pipe[1], "x", 1); });
      const auto bound = server.port();
      [[maybe_unused]] const auto n = ::write(port_pipe[1], &bound, sizeof bound);
      while (true) ::pause();
    }
    REQUIRE(::read(port_pipe[0], &port, sizeof port) == sizeof port);
    fired = UniqueFd(fired_pipe[0]);
    for (const int fd : {port_pipe[0], port_pipe[1], fired_pipe[1]}) ::close(fd);
  }
  ~StoppableServer() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  void stop() {
    ::kill(pid, SIGSTOP);
    int status = 0;
    ::waitpid(pid, &status, WUNTRACED);
  }
  void go_on() { ::kill(pid, SIGCONT); }

  pid_t pid = -1;
  std::uint16_t port = 0;
  UniqueFd fired;
};

}  // namespace

TEST_CASE("a server that was stopped reads what nodes sent meanwhile before it declares any of them lost") {
  StoppableServer server;
  RawClient agent(server.port);
  agent.hello({1, Role::kAgent, "", "ada", "n1", 0});
  std::string bytes;
  encode_leave_will(bytes, 5, 300, 50, "lost n1");
  agent.send(bytes);
  REQUIRE(agent.receive_u8() == static_cast<int>(WillStatus::kHeld));
  server.stop();
  bytes.clear();
  encode_keep_alive(bytes);
  agent.send(bytes);
  // Past the deadline, but not by so much that the server would give everybody more time anyhow.
  ::poll(nullptr, 0, 400);
  server.go_on();
  REQUIRE(agent.receive_u8() == static_cast<int>(WillStatus::kHeld));
  // From here on it is silent, and is lost in good order.
  REQUIRE(tensorplay::base::wait_readable(server.fired.get(), Deadline::after(30s)));
}

TEST_CASE("after a long stop a node gets its reconnect time before it is declared lost") {
  StoppableServer server;
  RawClient agent(server.port);
  agent.hello({1, Role::kAgent, "", "ada", "n1", 0});
  std::string bytes;
  encode_leave_will(bytes, 5, 50, 20'000, "lost n1");
  agent.send(bytes);
  REQUIRE(agent.receive_u8() == static_cast<int>(WillStatus::kHeld));
  server.stop();
  ::poll(nullptr, 0, 900);
  server.go_on();
  RawClient(server.port).ping();
  bytes.clear();
  encode_keep_alive(bytes);
  agent.send(bytes);
  REQUIRE(agent.receive_u8() == static_cast<int>(WillStatus::kHeld));
}
