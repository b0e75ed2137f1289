// What the store costs, ours beside torch's: the same generator on the same machine in one run.
//
//   store_bench [--quick]
//
// Client and server are pinned to one CPU each. torch's server is started through TP_TORCH_PYTHON; without it only
// ours is measured.
#include "runtime/base/socket.hpp"
#include "runtime/store/wire_codec.hpp"
#include "tensorplay/distributed/tcp_store.hpp"
#include "tests/bench/store_servers.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

using namespace std::chrono_literals;
using namespace tensorplay;
using tensorplay::base::Deadline;
using tensorplay::base::UniqueFd;
using tensorplay::bench::ServerProcess;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kClientCpu = 0;
constexpr int kServerCpu = 1;
bool is_quick = false;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Deadline soon() {
  return Deadline::after(60s);
}

/// One line of the table: what was measured on each server, and their ratio.
struct Row {
  std::string what;
  std::string unit;
  std::vector<double> values;  ///< Ours, then torch's.
};
std::vector<Row> table;
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

void note(const ServerProcess& server, const std::string& what, const std::string& unit, double value) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Row& row) { return row.what == what; });
  Row& row = found != table.end() ? *found : table.emplace_back(Row{what, unit, {kMissing, kMissing}});
  row.values[server.is_ours() ? 0 : 1] = value;
}

void print_table() {
  std::printf("\n%-52s %12s %12s %9s\n", "", "ours", "torch's", "ratio");
  for (const auto& row : table) {
    const auto what = row.what + ", " + row.unit;
    std::printf("%-52s ", what.c_str());
    for (const double value : row.values) std::isnan(value) ? std::printf("%12s ", "-") : std::printf("%12.1f ", value);
    if (row.values[0] > 0 && row.values[1] > 0) std::printf("%8.2fx", row.values[0] / row.values[1]);
    std::printf("\n");
  }
}

UniqueFd connect_validated(const ServerProcess& server) {
  auto fd = base::connect_to("127.0.0.1", server.port(), soon());
  std::string bytes;
  store::encode_validate(bytes);
  base::send_all(fd.get(), bytes, soon());
  return fd;
}

// ---- One client, one request after another.

void measure_round_trip(const ServerProcess& server, const std::string& name, const std::function<void()>& request) {
  const int count = is_quick ? 2'000 : 20'000;
  for (int i = 0; i < count / 10; ++i) request();
  std::vector<double> micros;
  micros.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    request();
    micros.push_back(seconds_since(begin) * 1e6);
  }
  std::sort(micros.begin(), micros.end());
  note(server, name + " p50", "us", micros[micros.size() / 2]);
  note(server, name + " p99", "us", micros[micros.size() * 99 / 100]);
}

void measure_round_trips(const ServerProcess& server) {
  distributed::TCPStore store({.host = "127.0.0.1", .port = server.port(), .wait_for_workers = false});
  store.set("key", "a value as short as most");
  measure_round_trip(server, "get", [&] { store.get("key"); });
  measure_round_trip(server, "add", [&] { store.add("counter", 1); });
  measure_round_trip(server, "check", [&] { store.check({"key"}); });

  // SET has no answer; a PING behind it in the same segment has.
  const auto fd = connect_validated(server);
  std::string request;
  store::encode_set(request, "/key", "a value as short as most");
  store::encode_ping(request, 1);
  measure_round_trip(server, "set, acknowledged", [&] {
    char pong[4];
    base::send_all(fd.get(), request, soon());
    base::recv_exact(fd.get(), pong, sizeof pong, soon(), 60us);
  });
}

// ---- Many clients at once, from one thread.

void measure_throughput(const ServerProcess& server, std::size_t clients) {
  std::vector<UniqueFd> connections;
  const UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  std::string request;
  store::encode_add(request, "/throughput", 1);
  for (std::size_t i = 0; i < clients; ++i) {
    connections.push_back(connect_validated(server));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = connections.back().get();
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.data.fd, &event);
  }
  for (const auto& connection : connections) base::send_all(connection.get(), request, soon());
  std::array<epoll_event, 128> events;
  const auto length = is_quick ? 0.3 : 2.0;
  const auto begin = Clock::now();
  std::size_t answered = 0;
  while (seconds_since(begin) < length) {
    const int count = ::epoll_wait(epoll.get(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) {
      char reply[8];
      base::recv_exact(events[static_cast<std::size_t>(i)].data.fd, reply, sizeof reply, soon());
      base::send_all(events[static_cast<std::size_t>(i)].data.fd, request, soon());
      ++answered;
    }
  }
  const auto elapsed = seconds_since(begin);
  note(server, "throughput of " + std::to_string(clients) + (clients == 1 ? " client" : " clients"), "1000/s",
       static_cast<double>(answered) / elapsed / 1000);
}

// ---- Ten thousand connections.

void measure_crowd(const ServerProcess& server) {
  const std::size_t clients = is_quick ? 1'000 : 10'000;
  const auto memory_before = server.resident_kib();
  std::vector<UniqueFd> crowd;
  std::string wait;
  store::encode_wait(wait, {"/go"});
  auto begin = Clock::now();
  for (std::size_t i = 0; i < clients; ++i) {
    crowd.push_back(connect_validated(server));
    base::send_all(crowd.back().get(), wait, soon());
  }
  auto one = connect_validated(server);
  std::string bytes;
  store::encode_ping(bytes, 1);
  base::send_all(one.get(), bytes, soon());
  char reply[4];
  base::recv_exact(one.get(), reply, sizeof reply, soon());
  const auto name = std::to_string(clients) + " clients";
  note(server, name + ": to connect and wait", "ms", seconds_since(begin) * 1e3);
  note(server, name + ": memory of each in the server", "bytes",
       static_cast<double>(server.resident_kib() - memory_before) * 1024 / static_cast<double>(clients));

  const auto cpu_before = server.cpu_seconds();
  ::poll(nullptr, 0, 1000);
  note(server, name + ": CPU while all wait", "ms/s", (server.cpu_seconds() - cpu_before) * 1e3);

  bytes.clear();
  store::encode_set(bytes, "/go", "");
  begin = Clock::now();
  base::send_all(one.get(), bytes, soon());
  for (const auto& client : crowd) base::recv_exact(client.get(), reply, 1, soon());
  note(server, name + ": from one set to the last release", "ms", seconds_since(begin) * 1e3);
}

// ---- Neighbours that need their CPUs.

/// How many rounds of work two processes, one on each CPU, finish in `length` while `meanwhile` runs here.
double work_done(std::chrono::milliseconds length, const std::function<void(Clock::time_point)>& meanwhile) {
  const auto end = Clock::now() + length;
  double total = 0;
  std::vector<std::pair<pid_t, int>> workers;
  for (const int cpu : {kClientCpu, kServerCpu}) {
    int pipe[2];
    if (::pipe(pipe) != 0) std::abort();
    const pid_t pid = ::fork();
    if (pid == 0) {
      bench::pin_to(cpu);
      double rounds = 0;
      while (Clock::now() < end) {
        volatile unsigned sink = 0;
        for (unsigned i = 0; i < 2'000; ++i) sink = sink + i;
        ++rounds;
      }
      [[maybe_unused]] const auto n = ::write(pipe[1], &rounds, sizeof rounds);
      ::_exit(0);
    }
    ::close(pipe[1]);
    workers.emplace_back(pid, pipe[0]);
  }
  meanwhile(end);
  for (const auto& [pid, fd] : workers) {
    double rounds = 0;
    [[maybe_unused]] const auto n = ::read(fd, &rounds, sizeof rounds);
    total += rounds;
    ::close(fd);
    ::waitpid(pid, nullptr, 0);
  }
  return total;
}

void measure_neighbours(const ServerProcess& server) {
  distributed::TCPStore store({.host = "127.0.0.1", .port = server.port(), .wait_for_workers = false});
  const auto window = is_quick ? 200ms : 1000ms;
  const int windows = is_quick ? 3 : 15;
  std::vector<double> losses;
  for (int i = 0; i < windows; ++i) {
    // One after the other, so that a drift of the machine falls on both.
    const auto alone = work_done(window, [](Clock::time_point) {});
    const auto beside = work_done(window, [&](Clock::time_point end) {
      for (auto next = Clock::now(); next < end; next += 10ms) {
        store.add("counter", 1);
        const auto left = std::chrono::duration_cast<std::chrono::microseconds>(next + 10ms - Clock::now()).count();
        if (left > 0) ::usleep(static_cast<useconds_t>(left));
      }
    });
    losses.push_back((alone - beside) / alone * 100);
  }
  std::sort(losses.begin(), losses.end());
  note(server, "two busy neighbours lose, at 1 add each 10 ms", "%", losses[losses.size() / 2]);
}

void measure(const ServerProcess& server) {
  bench::pin_to(kClientCpu);
  measure_round_trips(server);
  for (const std::size_t clients : {1, 10, 100}) measure_throughput(server, clients);
  measure_neighbours(server);
  measure_crowd(server);
}

}  // namespace

int main(int argc, char** argv) {
  is_quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  std::printf("store_bench: client on CPU %d, server on CPU %d\n", kClientCpu, kServerCpu);
  std::fflush(stdout);
  measure(ServerProcess::ours(kServerCpu));
  if (const auto torch = ServerProcess::torch(kServerCpu)) measure(*torch);
  print_table();
  return 0;
}
