/// A worker that fails in the way its first argument names, under record().
#include "tensorplay/distributed.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace dist = tensorplay::distributed;

namespace {

/// A class whose name shows up in a readable stack.
struct Victim {
  __attribute__((noinline)) static void write_through(volatile int* pointer) { *pointer = 1; }
};

/// Ends the group when it goes out of scope, and then stays a while, as a large heap does when it is given back.
struct Group {
  Group() { dist::init_process_group({.backend = "gloo"}); }
  ~Group() { dist::destroy_process_group(); }
};

int fail_in_collective(int culprit) {
  const Group group;
  std::vector<char> heap(400'000'000, 1);
  dist::barrier();
  if (dist::get_rank() == culprit) throw std::runtime_error("the culprit throws");
  auto tensor = tensorplay::ones({100'000});
  for (int i = 0; i < 1000; ++i) dist::all_reduce(tensor);
  return 0;
}

int run(const std::string& way) {
  if (way == "well") return 0;
  if (way == "code") return 7;
  if (way == "throw") throw std::runtime_error("no \"data\"\n");
  if (way == "throw-int") throw 42;
  if (way == "throw-later") {
    try {
      throw std::logic_error("dealt with");
    } catch (const std::exception&) {
    }
    throw std::out_of_range("the real one");
  }
  if (way == "throw-through-group") {
    dist::init_process_group(
        {.backend = "gloo", .world_size = 1, .rank = 0, .store = std::make_shared<dist::HashStore>()});
    struct LooksAtFile {
      // Destroyed after the group: what is in the file by now was written before the group had closed.
      ~LooksAtFile() { std::rename(std::getenv("TORCHELASTIC_ERROR_FILE"), std::getenv("SEEN_FILE")); }
    } const looks_at_file;
    struct EndsGroup {
      ~EndsGroup() { dist::destroy_process_group(); }
    } const ends_group;
    throw std::runtime_error("thrown with a group");
  }
  if (way == "segv") Victim::write_through(nullptr);
  if (way == "abort") std::abort();
  if (way == "terminate") std::thread([] { throw std::runtime_error("nobody catches this"); }).join();
  if (way == "overflow") {
    volatile char block[4096];
    block[0] = 1;
    return run(way) + block[0];
  }
  if (way.starts_with("join:")) {
    dist::init_process_group({.backend = "gloo", .timeout = std::chrono::milliseconds(std::stoi(way.substr(5)))});
    return 0;
  }
  if (way.starts_with("collective")) return fail_in_collective(std::stoi(way.substr(way.find(':') + 1)));
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  return dist::elastic::record([&] { return run(argc > 1 ? argv[1] : ""); });
}
