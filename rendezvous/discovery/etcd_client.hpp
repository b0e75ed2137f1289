#pragma once

#include "rendezvous/discovery/discovery.hpp"
#include "rendezvous/discovery/interrupt.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tensorplay::rendezvous {

/// etcd does not answer now; another try may work.
class EtcdUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One member of an etcd cluster.
struct EtcdMember {
  Endpoint endpoint;    ///< As people wrote it.
  std::string address;  ///< In digits.
};

/// The few requests that an election needs, over etcd's JSON gateway (etcd 3.4 and later, plain HTTP). A member that
/// does not answer is followed by the next one.
/// Each call throws EtcdUnavailable when no member answers, DistStoreError when what answers cannot help, and Cancelled
/// once the interrupt is set.
/// Thread rules: one user at a time. Ownership: the interrupt is borrowed.
class EtcdClient {
 public:
  using Revision = std::uint64_t;
  using Lease = std::int64_t;

  /// `patience` is for each member's answer.
  EtcdClient(std::vector<EtcdMember> members, const Interrupt& interrupt,
             std::chrono::milliseconds patience = std::chrono::seconds(5));

  struct Value {
    std::string text;
    Revision created = 0;  ///< The revision in which its key came to be.
    Revision now = 0;      ///< Of the whole store, when this was read.
    Lease lease = 0;       ///< That the key goes with.
  };
  /// nullopt when there is no such key.
  std::optional<Value> get(const std::string& key);

  /// Makes the key, to go with the lease. The revision; nullopt when there is one already.
  std::optional<Revision> create(const std::string& key, const std::string& text, Lease lease);

  Lease grant_lease(std::chrono::seconds time);
  bool keep_alive(Lease lease);  ///< Whether the lease still exists.
  void revoke(Lease lease);

  /// Waits until the key changes after `revision`, or for `time`.
  void wait_for_change(const std::string& key, Revision revision, std::chrono::milliseconds time);

 private:
  /// Looks at what has come of an answer, and says whether that is enough.
  using IsEnough = std::function<bool(const std::string& body)>;

  std::string post(const std::string& path, const std::string& body);
  std::string post_to(const EtcdMember& member, const std::string& path, const std::string& body,
                      distributed::Deadline deadline, const IsEnough& is_enough);
  base::UniqueFd connect(const EtcdMember& member);

  std::vector<EtcdMember> members_;
  const Interrupt& interrupt_;
  std::chrono::milliseconds patience_;
  std::size_t current_ = 0;
};

std::string base64_of(const std::string& bytes);
/// Throws std::invalid_argument.
std::string from_base64(const std::string& text);

}  // namespace tensorplay::rendezvous
