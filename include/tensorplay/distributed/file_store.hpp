#pragma once

#include "tensorplay/distributed/store.hpp"

#include <optional>

namespace tensorplay::distributed {

struct FileStoreOptions {
  std::string path;
  /// How many stores will be opened on the path over the run; the last to close removes the file. -1: never removed.
  int world_size = -1;
  Store::Timeout timeout = Store::kDefaultTimeout;
  /// Names the run and its attempt, the same on all ranks. By default what the launcher says (TORCHELASTIC_RUN_ID and
  /// TORCHELASTIC_RESTART_COUNT); empty when there is no launcher.
  std::optional<std::string> attempt;
};

/// A store in a file that all processes can reach: on one machine, or on a network file system with locks.
///
/// The file is an append-only log that torch's FileStore reads and writes too. Whoever opens it looks first whether an
/// earlier attempt left it behind: users of this class hold a lock on `path.users` for as long as they live, so a file
/// whose users are all gone without having closed it, or whose attempt was another, is emptied before use, with a
/// warning. Users of torch's class hold no such lock; a file that may still be theirs is kept, with a warning.
/// A file with `world_size` -1 is never emptied: it may be meant to last.
/// A record torn by a crash is not seen by readers and is cut off by the next writer. Queues are not supported.
/// Errors: a file system without locks, a full one, a file that is no store, a file removed or emptied while in use:
/// DistStoreError naming the path. Blocking: waits look again every few milliseconds, since no event crosses hosts.
/// Thread rules: as for Store, but a thread that waits does not hold up the others.
class TP_API FileStore final : public Store {
 public:
  explicit FileStore(FileStoreOptions options);
  explicit FileStore(std::string path, int world_size = -1);
  /// Says that this user is done, unless its last wait failed or an exception unwinds: then the file stays marked as
  /// unfinished for the next attempt to empty.
  ~FileStore() override;

  using Store::wait;
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key) override;
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired) override;
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, Timeout timeout) override;
  bool delete_key(std::string_view key) override;
  std::int64_t num_keys() override;
  void append(std::string_view key, std::string_view value) override;
  std::vector<std::string> list_keys() override;
  /// Opens the path once more, which counts as one more user.
  std::shared_ptr<Store> clone() override;
  Timeout timeout() const override;
  void set_timeout(Timeout timeout) override;

  const std::string& path() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorplay::distributed
