/// What one rank costs before it does anything: run it under tprun.
///
///     tprun --nproc-per-node=4 rank_cost
///
/// Rank 0 prints its memory and threads at each stage. Unique memory is what another rank on the host would add; it
/// leaves out the pages of program and libraries that all ranks share.
#include "tensorplay/distributed.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace dist = tensorplay::distributed;

namespace {

long field(const char* file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":")) return std::stol(line.substr(name.size() + 1));
  }
  return 0;
}

void report(const char* stage) {
  if (const char* rank = std::getenv("RANK"); rank != nullptr && std::string(rank) != "0") return;
  const long own =
      field("/proc/self/smaps_rollup", "Private_Dirty") + field("/proc/self/smaps_rollup", "Private_Clean");
  std::printf("| %s | %.1f | %.1f | %ld |\n", stage, static_cast<double>(field("/proc/self/status", "VmRSS")) / 1024,
              static_cast<double>(own) / 1024, field("/proc/self/status", "Threads"));
  std::fflush(stdout);
}

int run() {
  report("main begins");
  dist::init_process_group({.backend = "gloo"});
  dist::barrier();
  report("a group of all ranks");
  auto small = tensorplay::ones({1});
  dist::all_reduce(small);
  dist::barrier();
  report("after a small all_reduce");
  {
    auto large = tensorplay::ones({16 * 1024 * 1024});
    dist::all_reduce(large);
    dist::all_reduce(large, {.async_op = true})->wait();
    dist::barrier();
    report("with 64 MB reduced, also asynchronously");
  }
  dist::barrier();
  report("those 64 MB given back");
  dist::destroy_process_group();
  report("the group destroyed");
  return 0;
}

}  // namespace

int main() {
  if (const char* rank = std::getenv("RANK"); rank == nullptr || std::string(rank) == "0") {
    std::printf("| stage | resident MB | of its own MB | threads |\n| --- | --- | --- | --- |\n");
  }
  return dist::elastic::record(run);
}
