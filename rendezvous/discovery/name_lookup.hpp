#pragma once

#include "runtime/base/fd.hpp"
#include "runtime/base/socket.hpp"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tensorplay::rendezvous {

/// One question to the resolver. A name is asked for in a thread of its own, since the resolver may take its time and
/// cannot be interrupted; literals are answered at once.
///
/// An answer that nobody waits for any more is dropped: the process then keeps the thread, and joins it when it has
/// ended and another one is dropped.
/// Thread rules: one user at a time.
class NameLookup {
 public:
  NameLookup(const std::string& host, std::uint16_t port);
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  /// Readable once the answer is there.
  int fd() const;
  bool is_done() const;

  /// Once done: the addresses in the resolver's order, or none and why.
  const std::vector<base::SocketAddress>& addresses() const;
  const std::string& error() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace tensorplay::rendezvous
