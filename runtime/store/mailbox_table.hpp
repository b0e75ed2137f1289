#pragma once

#include "runtime/store/blob.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tensorplay::store {

/// The agents' table: the leader's inbox and one mailbox of orders for each agent.
///
/// The entries of a mailbox are numbered from 0. Reading over the network takes nothing away: the reader names the
/// first entry that it still needs, and the mailbox's owner thereby lets go of the earlier ones, so a reply lost with
/// its connection is read again after a reconnect. A push from the network carries its sender's sequence number, so
/// one that is sent again is kept once. The process that hosts the table pushes and pops without numbers.
/// A core without I/O. Thread rules: none of its own; one user at a time.
class MailboxTable {
 public:
  using ReaderId = std::uint64_t;

  /// An entry for a reader that has waited for it.
  struct Delivery {
    ReaderId reader = 0;
    std::uint64_t index = 0;
    Blob value;
  };
  using Deliveries = std::vector<Delivery>;

  void push(std::string_view mailbox, std::string&& value, Deliveries& deliveries);

  /// As push, once for each (sender, sequence): false when that sender has pushed this sequence number or a later one
  /// before.
  bool push_once(std::string_view mailbox, const std::string& sender, std::uint64_t sequence, std::string&& value,
                 Deliveries& deliveries);

  /// Takes the oldest entry.
  std::optional<std::string> try_pop(std::string_view mailbox);

  /// Gives `reader` the first entry numbered `first` or later, now or when it comes. With `lets_go` the entries before
  /// `first` are dropped. One reader waits for one entry at a time.
  void read(ReaderId reader, std::string_view mailbox, std::uint64_t first, bool lets_go, Deliveries& deliveries);

  /// Ends the reader's wait, if it has one.
  void cancel(ReaderId reader);

  /// From now on take_filled() names `mailbox` each time it goes from empty to not; at once if it is not empty now.
  void watch(const std::string& mailbox);
  void unwatch(const std::string& mailbox) { watched_.erase(mailbox); }
  std::vector<std::string> take_filled() { return std::exchange(filled_, {}); }
  bool has_filled() const noexcept { return !filled_.empty(); }

 private:
  struct Reader {
    ReaderId id = 0;
    std::uint64_t first = 0;
  };
  struct Mailbox {
    std::uint64_t base = 0;  ///< The number of the oldest entry.
    std::deque<Blob> entries;
    std::vector<Reader> readers;
  };

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };

  Mailbox& mailbox_of(std::string_view name);

  std::unordered_map<std::string, Mailbox, TextHash, std::equal_to<>> mailboxes_;
  std::unordered_map<std::string, std::uint64_t> next_sequence_;  ///< Of each sender.
  std::unordered_map<ReaderId, std::string> waiting_;             ///< In which mailbox each reader waits.
  std::unordered_set<std::string> watched_;
  std::vector<std::string> filled_;
};

}  // namespace tensorplay::store
