#include "tensorplay/distributed/file_store.hpp"

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/store/file_log.hpp"
#include "runtime/store/locked_file.hpp"
#include "runtime/store/value_rules.hpp"
#include "tensorplay/distributed/deadline.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace tensorplay::distributed {
namespace {

using store::FileLock;
using store::FileLog;
using store::LockedFile;
using store::UsersLock;
using namespace std::chrono_literals;
namespace file_key = store::file_key;

constexpr auto kFirstPause = 500us;
constexpr auto kLastPause = 10ms;  // as torch's: each look is a round trip where the file is far away
constexpr auto kLeastLockTime = 2s;

std::string attempt_from_environment() {
  const auto run = base::env_value(base::env::kRunId);
  if (!run || run->empty()) return "";
  return *run + '#' + base::env_value(base::env::kRestartCount).value_or("0");
}

std::string wire_key(std::string_view key) {
  return '/' + std::string(key);
}

}  // namespace

struct FileStore::Impl {
  explicit Impl(FileStoreOptions given);
  ~Impl();

  void open();
  bool try_open(bool& is_busy);
  void register_user();
  void close();

  /// Takes over what was written since the last look. Call under a lock of the file.
  void refresh();
  /// refresh(), and cuts off a torn tail: call under the exclusive lock.
  void refresh_for_writing();
  void append_record(const std::string& record);

  /// Runs `read` on the content as it is now.
  template <typename Read>
  auto reading(Read read) {
    const std::lock_guard guard(mutex);
    const FileLock lock = file->lock(LockedFile::Mode::kShared, lock_deadline());
    refresh();
    return read();
  }
  /// Runs `write` with the content as it is now and nobody else writing.
  template <typename Write>
  auto writing(Write write) {
    const std::lock_guard guard(mutex);
    const FileLock lock = file->lock(LockedFile::Mode::kExclusive, lock_deadline());
    refresh_for_writing();
    return write();
  }
  /// Returns once all keys are there; throws StoreTimeoutError naming those that are not at the deadline, which is
  /// `timeout` after the call began.
  void wait_until(Deadline deadline, Timeout timeout, const std::vector<std::string>& keys);

  Deadline lock_deadline() const { return Deadline::after(std::max<Timeout>(timeout.load(), kLeastLockTime)); }
  std::string describe() const { return "file store " + options.path; }

  FileStoreOptions options;
  std::string attempt;
  std::atomic<Timeout> timeout;
  std::atomic<bool> has_failed = false;  ///< The last wait timed out: its user is likely to give up.
  int exceptions_at_start = std::uncaught_exceptions();

  std::mutex mutex;  ///< Guards all below.
  std::optional<LockedFile> file;
  UsersLock users_lock;
  bool holds_users_lock = false;
  FileLog log;
  std::uint64_t offset = 0;  ///< Where the whole records seen so far end.
  bool is_tail_torn = false;
};

FileStore::Impl::Impl(FileStoreOptions given) : options(std::move(given)), timeout(options.timeout) {
  if (options.path.empty()) throw InvalidArgument("a file store needs a path; got an empty one");
  attempt = options.attempt.value_or(attempt_from_environment());
  open();
}

void FileStore::Impl::open() {
  const auto deadline = Deadline::after(timeout.load());
  bool is_busy = false;
  while (!try_open(is_busy)) {
    if (deadline.has_passed()) {
      throw DistStoreError(describe() + (is_busy
                                             ? ": is still in use by another run (" + *log.find(file_key::kAttempt) +
                                                   ", not " + attempt + "); give each run a file of its own"
                                             : ": is removed again each time it is opened"));
    }
    std::this_thread::sleep_for(kLastPause);
  }
}

bool FileStore::Impl::try_open(bool& is_busy) {
  const std::lock_guard guard(mutex);
  is_busy = false;
  log.clear();
  offset = 0;
  file.emplace(options.path, lock_deadline());
  const FileLock lock = file->lock(LockedFile::Mode::kExclusive, lock_deadline());
  // Between opening and locking the last user of the file may have removed it.
  if (!file->is_at_its_path()) return false;
  refresh_for_writing();

  const auto others = UsersLock::look(options.path, users_lock);
  const std::string* found_attempt = log.find(file_key::kAttempt);
  const store::FileState state{.is_empty = offset == 0,
                               .users = log.counter(file_key::kRefCount),
                               .locking_users = log.counter(file_key::kUsers),
                               .is_lock_held = others != UsersLock::Others::kNone,
                               .attempt = found_attempt == nullptr ? std::string() : *found_attempt};
  switch (store::judge_found_file(state, options.world_size, attempt)) {
    case store::FileVerdict::kBusy:
      is_busy = true;
      return false;
    case store::FileVerdict::kEmpty:
      base::log::warning(describe() + ": was left behind by an earlier attempt, with " +
                         std::to_string(log.entries().size()) + " keys; emptied");
      file->truncate(0);
      log.clear();
      offset = 0;
      break;
    case store::FileVerdict::kUseDoubtful:
      base::log::warning(describe() + ": holds " + std::to_string(log.entries().size()) + " keys of " +
                         std::to_string(state.users - state.locking_users) +
                         " users that may be alive or gone; if they are of an earlier run, remove it first");
      break;
    case store::FileVerdict::kUse:
      break;
  }
  holds_users_lock = users_lock.join();
  register_user();
  return true;
}

void FileStore::Impl::register_user() {
  std::string records;
  if (offset == 0 && !attempt.empty()) records += store::encode_record(file_key::kAttempt, attempt);
  records += store::encode_record(file_key::kRefCount, std::to_string(log.counter(file_key::kRefCount) + 1));
  if (holds_users_lock) {
    records += store::encode_record(file_key::kUsers, std::to_string(log.counter(file_key::kUsers) + 1));
  }
  append_record(records);
}

FileStore::Impl::~Impl() {
  try {
    close();
  } catch (const std::exception& error) {
    base::log::debug([&] { return std::string("closing: ") + error.what(); });
  }
}

void FileStore::Impl::close() {
  // A user that fails leaves its mark in the counts, so that the next attempt sees an unfinished file.
  if (has_failed || std::uncaught_exceptions() > exceptions_at_start) return;
  const std::lock_guard guard(mutex);
  const FileLock lock = file->lock(LockedFile::Mode::kExclusive, Deadline::after(kLeastLockTime));
  if (!file->is_at_its_path()) return;
  refresh_for_writing();
  const std::int64_t users = log.counter(file_key::kRefCount) - 1;
  const std::int64_t closed = log.counter(file_key::kCleanup) + 1;
  if (users <= 0 && options.world_size >= 0 && closed >= options.world_size) {
    file->remove();
    UsersLock::remove(options.path);
    return;
  }
  std::string records = store::encode_record(file_key::kRefCount, std::to_string(users)) +
                        store::encode_record(file_key::kCleanup, std::to_string(closed));
  if (holds_users_lock) {
    records += store::encode_record(file_key::kUsers, std::to_string(log.counter(file_key::kUsers) - 1));
  }
  append_record(records);
}

void FileStore::Impl::refresh() {
  const std::uint64_t size = file->size();
  if (size < offset) throw DistStoreError(describe() + ": was emptied while in use; another run took it over");
  is_tail_torn = false;
  if (size == offset) return;
  const std::string bytes = file->read(offset, size - offset);
  const auto fed = log.feed(bytes);
  offset += fed.consumed;
  if (fed.tail == FileLog::Tail::kNotAStore) {
    throw DistStoreError(describe() + ": is not a store: no record begins at byte " + std::to_string(offset) +
                         "; remove it or give another path");
  }
  is_tail_torn = fed.tail == FileLog::Tail::kTorn;
}

void FileStore::Impl::refresh_for_writing() {
  refresh();
  if (!is_tail_torn) return;
  base::log::warning(describe() + ": its last record was torn by a crash; cut off at byte " + std::to_string(offset));
  file->truncate(offset);
  is_tail_torn = false;
}

void FileStore::Impl::append_record(const std::string& record) {
  file->write(offset, record);
  log.feed(record);
  offset += record.size();
}

void FileStore::Impl::wait_until(Deadline deadline, Timeout timeout, const std::vector<std::string>& keys) {
  std::chrono::microseconds pause = kFirstPause;
  while (true) {
    const bool is_last_look = deadline.has_passed();
    const std::vector<std::string> missing = reading([&] {
      std::vector<std::string> absent;
      for (const auto& key : keys) {
        if (log.find(wire_key(key)) == nullptr) absent.push_back(key);
      }
      return absent;
    });
    has_failed = !missing.empty() && is_last_look;
    if (missing.empty()) return;
    if (is_last_look) throw StoreTimeoutError(describe() + ": " + store::wait_timeout_text(timeout.count(), missing));
    std::this_thread::sleep_for(std::min<Deadline::Clock::duration>(pause, deadline.remaining()));
    pause = std::min<std::chrono::microseconds>(pause * 2, kLastPause);
  }
}

FileStore::FileStore(FileStoreOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

FileStore::FileStore(std::string path, int world_size)
    : FileStore(FileStoreOptions{.path = std::move(path), .world_size = world_size, .attempt = std::nullopt}) {}

FileStore::~FileStore() = default;

void FileStore::set(std::string_view key, std::string_view value) {
  const std::string record = store::encode_record(wire_key(key), value);
  impl_->writing([&] { impl_->append_record(record); });
}

std::string FileStore::get(std::string_view key) {
  const std::string whole_key = wire_key(key);
  const Timeout limit = timeout();
  const auto deadline = Deadline::after(limit);
  while (true) {
    impl_->wait_until(deadline, limit, {std::string(key)});
    std::optional<std::string> value = impl_->reading([&] {
      const std::string* found = impl_->log.find(whole_key);
      return found == nullptr ? std::nullopt : std::optional(*found);
    });
    if (value) return std::move(*value);  // else deleted in between: wait for it once more
  }
}

std::int64_t FileStore::add(std::string_view key, std::int64_t delta) {
  const std::string whole_key = wire_key(key);
  return impl_->writing([&] {
    const std::int64_t sum = store::add_to_counter(impl_->log.find(whole_key), delta, key);
    impl_->append_record(store::encode_record(whole_key, std::to_string(sum)));
    return sum;
  });
}

std::string FileStore::compare_set(std::string_view key, std::string_view expected, std::string_view desired) {
  const std::string whole_key = wire_key(key);
  return impl_->writing([&] {
    auto outcome = store::compare_set_outcome(impl_->log.find(whole_key), expected, desired);
    if (outcome.is_stored) impl_->append_record(store::encode_record(whole_key, outcome.answer));
    return outcome.answer;
  });
}

bool FileStore::check(const std::vector<std::string>& keys) {
  return impl_->reading([&] {
    return std::all_of(keys.begin(), keys.end(),
                       [&](const auto& key) { return impl_->log.find(wire_key(key)) != nullptr; });
  });
}

void FileStore::wait(const std::vector<std::string>& keys, Timeout timeout) {
  impl_->wait_until(Deadline::after(timeout), timeout, keys);
}

bool FileStore::delete_key(std::string_view key) {
  const std::string whole_key = wire_key(key);
  return impl_->writing([&] {
    if (impl_->log.find(whole_key) == nullptr) return false;
    impl_->append_record(store::encode_deletion(whole_key));
    return true;
  });
}

std::int64_t FileStore::num_keys() {
  return impl_->reading([&] { return static_cast<std::int64_t>(impl_->log.entries().size()); });
}

void FileStore::append(std::string_view key, std::string_view value) {
  const std::string whole_key = wire_key(key);
  impl_->writing([&] {
    const std::string* current = impl_->log.find(whole_key);
    const std::string whole = (current == nullptr ? std::string() : *current) + std::string(value);
    impl_->append_record(store::encode_record(whole_key, whole));
  });
}

std::vector<std::string> FileStore::list_keys() {
  return impl_->reading([&] {
    std::vector<std::string> keys;
    for (const auto& [key, value] : impl_->log.entries()) {
      if (key.starts_with('/')) keys.push_back(key.substr(1));
    }
    return keys;
  });
}

std::shared_ptr<Store> FileStore::clone() {
  FileStoreOptions options = impl_->options;
  options.timeout = timeout();
  options.attempt = impl_->attempt;
  return std::make_shared<FileStore>(std::move(options));
}

Store::Timeout FileStore::timeout() const {
  return impl_->timeout.load();
}

void FileStore::set_timeout(Timeout timeout) {
  (void)Deadline::after(timeout);  // refuses a negative one
  impl_->timeout.store(timeout);
}

const std::string& FileStore::path() const {
  return impl_->options.path;
}

}  // namespace tensorplay::distributed
