/// Who hosts the store, decided from what is known of the endpoints: whether to host, to join, to wait or to give up.
/// A core without I/O or clock: the same view gives the same choice.
#pragma once

#include "rendezvous/discovery/greeting.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::rendezvous {

using std::chrono::milliseconds;

struct EndpointView {
  std::string name;                                          ///< "n1:29400", for messages.
  bool is_own = false;                                       ///< It leads to an address of this host.
  bool is_port_taken = false;                                ///< This host cannot bind its port.
  Finding finding;                                           ///< The newest.
  std::optional<milliseconds> answering_for = std::nullopt;  ///< How long it has been a store of this job.
};

/// All that the choice depends on.
struct SearchView {
  std::vector<EndpointView> endpoints;  ///< In the order of --rdzv-endpoint.
  std::uint64_t last_epoch = 0;         ///< Of the last store this agent spoke to; 0: none.
  std::optional<std::size_t> lost;      ///< The endpoint where that store was.
  std::optional<bool> is_host;
  std::optional<int> node_index;
  milliseconds elapsed{0};                   ///< Since the search began.
  milliseconds total{0};                     ///< From then to the deadline.
  std::optional<milliseconds> joinable_for;  ///< How long a store that could be joined has been known.
};

struct Choice {
  enum class Kind : std::uint8_t { kWait, kJoin, kHost, kFail };
  Kind kind = Kind::kWait;
  std::size_t endpoint = 0;
  std::uint64_t epoch = 0;                                   ///< Of the store to join, or to be hosted.
  bool is_successor = false;                                 ///< To host in place of an earlier endpoint.
  std::string why;                                           ///< For people.
  std::optional<milliseconds> look_again_at = std::nullopt;  ///< When time alone could change the choice.
};

/// Several stores may answer for a moment: the newest is joined, once the others had this time to answer.
inline constexpr milliseconds kSettleTime{300};
/// An endpoint that has said nothing after this time holds up nobody who may host.
inline constexpr milliseconds kFirstLook{1'000};
/// How long the owner of an address has to show itself before node 0 hosts in its stead.
inline constexpr milliseconds kOwnerTime{3'000};

/// static: node rank 0 hosts, the others join.
Choice choose_static(const SearchView& view);

/// c10d: the owner of the first endpoint hosts. Behind it, each endpoint's owner may host once the time of those before
/// it is over: each has the same share of the whole time, but for one that a stranger holds. After a loss the next one
/// behind the lost endpoint is first, and the list goes round.
Choice choose_endpoint(const SearchView& view);

/// For how long another host with an older epoch has to keep its place: by then one that waits too has stepped down.
inline constexpr milliseconds kRivalTime{8'000};

/// For a host that waits for a quorum (`lost` is its own endpoint, `last_epoch` its own epoch): joins another host of
/// the same job. One of a newer epoch at once; one of an older epoch once it has kept its place for kRivalTime, since
/// it must then have a quorum: without one it would have stepped down in favour of this host.
Choice choose_rival(const SearchView& view);

/// Whether this store may be joined: one of an older epoch belongs to a host that has been succeeded.
bool is_joinable(const SearchView& view, const EndpointView& endpoint);

}  // namespace tensorplay::rendezvous
