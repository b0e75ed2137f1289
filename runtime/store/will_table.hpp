#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tensorplay::store {

/// The wills that agents have left, and which of their owners are lost: decided from events and their times alone.
///
/// An owner is lost when nothing was heard on its connection for its keep-alive time; when its connection closed and it
/// did not leave its will again, with the same token, within its reconnect time; or at once when its guardian says so.
/// An owner that is lost stays lost: its token is refused from then on, so it learns what the others were told.
///
/// Lateness of the server itself is no fault of the owners'. Before anything is decided the caller reads what has
/// come in on the connections that `due` names; and when the table is asked much later than it wanted to be, the
/// process was stopped or starved, so every owner first gets its reconnect time to be heard.
/// A core without I/O. Thread rules: none of its own; one user at a time.
class WillTable {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Milliseconds = std::chrono::milliseconds;
  using ConnectionId = std::uint64_t;

  /// Asked later than this after `next_tick()`, the server counts as having been stalled.
  static constexpr Milliseconds kStall{500};
  /// How many lost owners are remembered; the oldest are forgotten first.
  static constexpr std::size_t kMaxLost = 65'536;

  struct Will {
    std::string owner;
    std::uint64_t token = 0;  ///< Tells the owner (and its guardian) from whoever else uses its name.
    Milliseconds keep_alive{15'000};
    Milliseconds reconnect{2'000};
    std::string message;  ///< What is to be pushed when the owner is lost.
  };

  enum class Outcome : std::uint8_t { kHeld, kResumed, kOwnedByAnother, kLost };

  enum class Cause : std::uint8_t { kSilent, kClosed, kDeclared };

  /// An owner that is lost.
  struct Loss {
    std::string message;
    Cause cause = Cause::kSilent;
    Milliseconds silence{0};  ///< Since it was last heard.
  };

  /// Leaves a will on `connection`, or replaces the owner's earlier one and takes it over to this connection.
  Outcome leave(Will will, ConnectionId connection, TimePoint now);

  /// Something came from the owner's connection. Whether there is a will on that connection.
  bool heard(ConnectionId connection, TimePoint now);

  /// The connection has closed: from now on its owner is under suspicion.
  void closed(ConnectionId connection, TimePoint now);

  /// The owner leaves of its own accord: nothing will be pushed. Whether there was a will on that connection.
  bool cancel(ConnectionId connection);

  /// The guardian's word that the owner is dead; nothing when it has no will here or the token is another's.
  std::optional<Loss> declare_lost(const std::string& owner, std::uint64_t token, TimePoint now);

  /// The connections of those who are about to be lost: read what is there before calling tick. Those under suspicion
  /// have none.
  std::vector<ConnectionId> due(TimePoint now) const;

  /// Those who are lost now, in the order of their deadlines.
  std::vector<Loss> tick(TimePoint now);

  /// When tick could next have anything to say.
  std::optional<TimePoint> next_tick() const;

  std::size_t size() const noexcept { return wills_.size(); }

 private:
  static constexpr ConnectionId kNoConnection = ~ConnectionId{0};

  struct Held {
    Will will;
    ConnectionId connection = kNoConnection;  ///< None while under suspicion.
    TimePoint heard;
    TimePoint deadline;
    std::uint64_t serial = 0;  ///< Orders equal deadlines the same way on every machine.
  };
  using DeadlineKey = std::pair<TimePoint, std::uint64_t>;

  Held* on_connection(ConnectionId connection);
  void set_deadline(Held& held, TimePoint deadline);
  Loss lose(Held& held, Cause cause, TimePoint now);
  void remove(Held& held);

  std::unordered_map<std::string, Held> wills_;
  std::unordered_map<ConnectionId, Held*> by_connection_;
  std::map<DeadlineKey, Held*> deadlines_;
  std::uint64_t next_serial_ = 0;
  using OwnerAndToken = std::pair<std::string, std::uint64_t>;
  std::set<OwnerAndToken> lost_;
  std::deque<OwnerAndToken> lost_in_order_;
};

}  // namespace tensorplay::store
