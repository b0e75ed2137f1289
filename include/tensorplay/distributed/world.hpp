#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/process_group.hpp"

#include <memory>

namespace tensorplay::distributed {

/// What one rank knows: its default group and the stores it has met. Every function of this library that is given no
/// group asks the current World, and nothing reads a rank behind its back.
///
/// A process has one, made when first asked for. Several ranks can live in one process as threads, each of which binds
/// a World of its own:
///
///     World world;
///     World::Binding binding(world);    // until the end of the scope, in this thread
///     init_process_group({.backend = "gloo", .world_size = 4, .rank = i, .store = shared_hash_store});
///
/// Thread rules: one World is used by one thread at a time, but for its groups.
class TP_API World {
 public:
  World();
  ~World();  ///< Shuts the groups down that are left.
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// The World bound by this thread, else the process's.
  static World& current();

  /// Makes `world` the current one of this thread; the previous one again when it ends. May be nested.
  class TP_API Binding {
   public:
    explicit Binding(World& world) noexcept;
    ~Binding();
    Binding(const Binding&) = delete;
    Binding& operator=(const Binding&) = delete;

   private:
    World* previous_;
  };

  /// The default group; null when there is none.
  const std::shared_ptr<ProcessGroup>& default_group() const noexcept;

  struct State;  // The library's own.
  State& state() noexcept { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tensorplay::distributed
