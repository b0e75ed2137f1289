/// Ranks as threads of one process, each with a World of its own: the cheapest world there is.
#pragma once

#include "tensorplay/distributed.hpp"
#include "tensorplay/distributed/hash_store.hpp"

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tensorplay::testing {

/// What became of each rank: empty for those that ended well, else the exception's text.
using Endings = std::vector<std::string>;

/// Runs `body(rank)` in `size` threads at once and returns how each ended. Nothing is initialised.
inline Endings run_threads(int size, const std::function<void(int rank)>& body) {
  Endings endings(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      distributed::World world;
      const distributed::World::Binding binding(world);
      try {
        body(rank);
      } catch (const std::exception& error) {
        endings[static_cast<std::size_t>(rank)] = error.what();
        if (endings[static_cast<std::size_t>(rank)].empty()) endings[static_cast<std::size_t>(rank)] = "?";
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return endings;
}

/// The same inside a gloo group of all of them.
inline Endings run_ranks(int size, const std::function<void(int rank)>& body,
                         std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  auto store = std::make_shared<distributed::HashStore>();
  return run_threads(size, [&](int rank) {
    distributed::init_process_group(
        {.backend = "gloo", .timeout = timeout, .world_size = size, .rank = rank, .store = store});
    body(rank);
    distributed::destroy_process_group();
  });
}

/// What run_ranks returns when every rank ended well.
inline Endings all_well(int size) {
  return Endings(static_cast<std::size_t>(size));
}

}  // namespace tensorplay::testing
