/// From an init method to a store, a rank and a world size.
#pragma once

#include "tensorplay/distributed/deadline.hpp"
#include "tensorplay/distributed/store.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace tensorplay::distributed {

/// Where a rank has to go: the outcome of parsing, before anything is opened.
struct RendezvousPlan {
  enum class Kind { kTcp, kFile };

  Kind kind = Kind::kTcp;
  std::string host;  ///< kTcp
  std::uint16_t port = 0;
  bool hosts_store = false;  ///< This process serves the store.
  std::string path;          ///< kFile
  int rank = -1;
  int world_size = -1;

  /// What the store is called in messages, and under which two inits share one: "127.0.0.1:29500".
  std::string place() const;
};

/// Environment variables by name; what is unset is absent.
using Environment = std::map<std::string, std::string>;

/// The variables that an init method looks at, from this process's environment.
Environment rendezvous_environment();

/// Pure. `url` is env://, tcp://HOST:PORT or file:///PATH, each with an optional query rank=R&world_size=W; `rank` and
/// `world_size` are -1 where the caller gave none. InvalidArgument, naming the part or variable, for what is missing,
/// malformed or given twice.
RendezvousPlan plan_rendezvous(std::string_view url, int rank, int world_size, const Environment& environment);

/// Opens the planned store, hosting it where this rank has to. Errors name the place and what was tried.
std::shared_ptr<Store> open_store(const RendezvousPlan& plan, Deadline deadline);

}  // namespace tensorplay::distributed
