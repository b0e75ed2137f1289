/// Where is the store? Each agent asks once when it joins, and again when the store was lost. The answer is an address
/// to connect to, or a bound socket: then this agent is the host.
///
/// Four ways to find out, one class each: fixed (static: node rank 0 hosts), endpoints (c10d: whoever owns the
/// endpoint's address hosts, a list is fallen through), a shared folder, etcd (docs/rendezvous.md).
#pragma once

#include "runtime/base/fd.hpp"
#include "tensorplay/distributed/deadline.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::rendezvous {

/// One place of `--rdzv-endpoint`; the host is a name or an address without brackets, an IPv6 one with its zone.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;  ///< 0: any free port (one node only).
  bool operator==(const Endpoint&) const = default;
};

/// What every way of discovery has to know of this agent.
struct DiscoveryOptions {
  std::vector<Endpoint> endpoints;  ///< In the order in which they are tried. For etcd: etcd's own.
  std::string folder;               ///< For file: the folder that all nodes share.
  std::string run_id;
  std::string user;
  std::optional<bool> is_host;    ///< Settled from outside: static's node rank 0.
  std::optional<int> node_index;  ///< The scheduler's index of this node, where it is known: 0 hosts what nobody owns.
  bool is_alone = false;          ///< One node: loopback will do, and `localhost` is no mistake.
  std::string local_addr;         ///< --local-addr: what this host calls itself towards others; may be empty.
  std::string secret;             ///< Of --rdzv-token-file; empty: none.
  std::string etcd_prefix;        ///< For etcd: what its keys begin with; empty: "/tprun".
  /// For etcd: called from a thread of discovery's own when this agent may not host any longer, since etcd has let its
  /// lease go: another agent may host already.
  std::function<void(const std::string& why)> on_host_lost;
  /// The addresses of a host whose name the resolver does not know, as the batch scheduler tells them; empty: it does
  /// not know either. Blocks, a few seconds at most; called from find()'s thread only, and each time a name fails.
  std::function<std::vector<std::string>(const std::string& host)> ask_scheduler;
};

/// What an agent knows of the world from before, when it looks for a store again.
struct LastSeen {
  std::uint64_t epoch = 0;                ///< Of the last store it spoke to; 0: none yet.
  std::optional<Endpoint> lost_endpoint;  ///< The store that was seen there and is lost.
};

/// The answer.
struct MeetingPlace {
  bool is_host = false;
  base::UniqueFd listen_fd;   ///< When is_host: bound, and listening.
  Endpoint endpoint;          ///< How this agent reaches the store; the port as bound.
  std::uint64_t epoch = 1;    ///< Which store of the job this is: a successor's is higher by one.
  bool is_successor = false;  ///< It takes over from a lost host: only with more than half of the last world.
  std::string address = {};   ///< When not is_host: the address that answered there, in digits; empty: not known.
};

/// Thread rules: find() blocks and belongs to a thread of its own; cancel() may be called from any other thread.
/// Ownership: what a host leaves for the others to find (a file, a key in etcd) stays there until it looks again, or
/// until this object is destroyed: so a host keeps it for as long as it hosts.
class Discovery {
 public:
  virtual ~Discovery() = default;

  /// Looks until it knows or the deadline passes. `say` gets a line for a person whenever the reason for waiting
  /// changes ("n1 does not resolve yet"). Throws TimeoutError (naming the last reason of each endpoint), DistStoreError
  /// where waiting cannot help (a port held by a stranger, two hosts in static), Cancelled after cancel().
  virtual MeetingPlace find(const LastSeen& last, distributed::Deadline deadline,
                            const std::function<void(const std::string&)>& say) = 0;

  /// Makes a find() that is under way, and every later one, end at once.
  virtual void cancel() = 0;
};

/// Thrown by find() after cancel().
struct Cancelled {};

/// Looks at the other endpoints of a list for another host of the same job, for one that waits for a quorum: find() is
/// given its own epoch and endpoint, never answers that it is to host, and is best given no deadline.
std::unique_ptr<Discovery> make_rival_search(DiscoveryOptions options);

/// `backend` is static, c10d, file or etcd-v3.
std::unique_ptr<Discovery> make_discovery(const std::string& backend, DiscoveryOptions options);

}  // namespace tensorplay::rendezvous
