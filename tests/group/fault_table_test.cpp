/// Each operation x (peer killed, stopped, late, cut off): every rank ends by its deadline, somebody names the culprit,
/// and the others can build a group again.
#include "tests/support/rank_checks.hpp"
#include "tests/support/rank_processes.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <map>

#include <sys/socket.h>
#include <sys/stat.h>

using namespace tensorplay;
using namespace tensorplay::distributed;
using namespace tensorplay::testing;
using namespace std::chrono_literals;

namespace {

constexpr int kSize = 3;
constexpr int kVictim = 1;
constexpr auto kLimit = 400ms;

using Call = std::function<void(int rank)>;

std::vector<Tensor> three() {
  return {zeros({4}), zeros({4}), zeros({4})};
}

/// Rooted calls have the victim as their root, or as one of those the root needs.
const std::map<std::string, Call>& calls() {
  static const std::map<std::string, Call> all = {
      {"broadcast", [](int) { broadcast(ones({4}), {.src = kVictim}); }},
      {"all_reduce", [](int) { all_reduce(ones({4})); }},
      {"all_reduce, large", [](int) { all_reduce(ones({3'000'000})); }},
      {"all_reduce, asynchronous", [](int) { all_reduce(ones({4}), {.async_op = true})->wait(); }},
      {"all_reduce_coalesced",
       [](int) {
         all_reduce_coalesced({ones({4}), ones({5})});
       }},
      {"reduce", [](int) { reduce(ones({4})); }},
      {"all_gather", [](int) { all_gather(three(), ones({4})); }},
      {"all_gather_single", [](int) { all_gather_single(zeros({12}), ones({4})); }},
      {"gather", [](int rank) { gather(ones({4}), rank == 0 ? three() : std::vector<Tensor>{}); }},
      {"scatter",
       [](int rank) { scatter(zeros({4}), rank == kVictim ? three() : std::vector<Tensor>{}, {.src = kVictim}); }},
      {"reduce_scatter", [](int) { reduce_scatter(zeros({4}), three()); }},
      {"reduce_scatter_single", [](int) { reduce_scatter_single(zeros({4}), zeros({12})); }},
      {"all_to_all", [](int) { all_to_all(three(), three()); }},
      {"all_to_all_single", [](int) { all_to_all_single(zeros({12}), ones({12})); }},
      {"barrier", [](int) { barrier(); }},
      {"monitored_barrier", [](int) { monitored_barrier(); }},
      {"recv",
       [](int rank) { rank == kVictim ? send(zeros({4}), {.dst = 0}) : void(recv(zeros({4}), {.src = kVictim})); }},
      {"irecv",
       [](int rank) { rank == kVictim ? send(zeros({4}), {.dst = 0}) : irecv(zeros({4}), {.src = kVictim})->wait(); }},
      {"send, large",
       [](int rank) {
         rank == kVictim ? void(recv(zeros({9'000'000}), {.src = 0})) : send(zeros({9'000'000}), {.dst = kVictim});
       }},
      {"recv from any source",
       [](int rank) {
         if (rank == 0) recv(zeros({4}), {});
         if (rank == kVictim) send(zeros({4}), {.dst = 0});
         if (rank == 2) barrier();
       }},
      {"broadcast_object_list",
       [](int) {
         std::vector<Object> list = {1};
         broadcast_object_list(list, {.src = kVictim});
       }},
      {"all_gather_object",
       [](int) {
         std::vector<Object> list;
         all_gather_object(list, 1);
       }},
  };
  return all;
}

/// Shuts every socket of this process down, as a cable that is pulled would in the end.
void cut_all_connections() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    struct stat status {};
    if (::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) ::shutdown(fd, SHUT_RDWR);
  }
}

enum class Fault : std::uint8_t { kKilled, kStopped, kLate, kCut };

void suffer(Fault fault) {
  switch (fault) {
    case Fault::kKilled:
      ::raise(SIGKILL);
      break;
    case Fault::kStopped:
      ::raise(SIGSTOP);
      break;
    case Fault::kLate:
      get_default_group()->store()->wait({"0 gave up", "2 gave up"}, 20s);
      break;
    case Fault::kCut:
      cut_all_connections();
      break;
  }
}

/// One rank's part: its error, or nothing when its own share was done before the fault.
void take_part(int rank, const Call& call, Fault fault, const std::string& directory) {
  join_by_file(directory + "/first", rank, kSize, 20s);
  barrier();
  set_timeout(kLimit);
  std::string text;
  const auto started = std::chrono::steady_clock::now();
  if (rank == kVictim) suffer(fault);
  try {
    call(rank);
  } catch (const DistBackendError& error) {
    text = error.what();
  }
  const auto took = std::chrono::steady_clock::now() - started;
  if (rank != kVictim) get_default_group()->store()->set(std::to_string(rank) + " gave up", "");
  destroy_process_group();
  // The deadline, once more for a monitored barrier's verdict, and a busy machine; far from hanging.
  check(rank == kVictim || took < 2 * kLimit + 8s, "took too long");
  if (rank != kVictim) {
    join_by_file(directory + "/second", rank / 2, 2, 20s);
    Tensor sum = ones({1});
    all_reduce(sum);
    check(sum.item() == 2, "the group built afterwards");
    destroy_process_group();
  }
  if (!text.empty()) throw DistBackendError(text);
}

void run_table(Fault fault) {
  for (const auto& [name, call] : calls()) {
    const TemporaryDirectory directory;
    RankProcesses ranks(kSize, [&, &call = call](int rank) { take_part(rank, call, fault, directory.path()); });
    const auto first = ranks.ending(0);
    const auto last = ranks.ending(2);
    INFO(name << "\n  rank 0: " << first << "\n  rank 2: " << last);
    for (const auto& ending : {first, last}) {
      const bool is_well_told =
          ending.empty() || ending.find("rank") != std::string::npos || ending.find("Rank") != std::string::npos;
      CHECK(is_well_told);
      CHECK(ending.find("took too long") == std::string::npos);
      CHECK(ending.find("the group built") == std::string::npos);
    }
    const bool is_named = (first + last).find("ank 1") != std::string::npos || name == "recv from any source";
    CHECK(is_named);
    if (fault == Fault::kLate || fault == Fault::kCut) {
      const auto late = ranks.ending(kVictim);
      INFO("the victim: " << late);
      CHECK(late.find("ank ") != std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("a killed peer ends every operation on every rank, by name, and a group can be built again") {
  run_table(Fault::kKilled);
}

TEST_CASE("a stopped peer ends every operation by its deadline, by name, and a group can be built again") {
  run_table(Fault::kStopped);
}

TEST_CASE("a late peer ends every operation by its deadline, and gets an error itself") {
  run_table(Fault::kLate);
}

TEST_CASE("a peer that is cut off ends every operation on every rank, its own too") {
  run_table(Fault::kCut);
}
