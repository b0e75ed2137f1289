/// A thread that writes, so that nobody else has to wait for a disk or a console. Blocks of bytes go in from any thread
/// and come out in order; how much one source may have waiting is counted by its Quota, and the source stops reading
/// when it is used up.
#pragma once

#include "agent/terminal_screen.hpp"
#include "runtime/base/fd.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace tensorplay::agent {

/// How many bytes of one source are waiting to be written, wherever they go.
/// Thread rules: `give_back` by the writers, everything else by the source. `on_room` runs on a writer's thread.
class Quota {
 public:
  Quota(std::size_t limit, std::function<void()> on_room) : limit_(limit), on_room_(std::move(on_room)) {}

  void add(std::size_t bytes) { waiting_.fetch_add(bytes, std::memory_order_relaxed); }

  /// True when the source must stop; `on_room` will then be called once, when half is free again.
  bool is_used_up();
  void give_back(std::size_t bytes);

  /// The source is gone: once this has returned `on_room` is not running, and never will again.
  void forget_source();

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> waiting_{0};
  std::atomic<bool> wants_room_{false};
  std::mutex mutex_;
  std::function<void()> on_room_;  ///< Guarded by mutex_.
};

/// One place bytes go to: a file that is owned, or a console's descriptor that is not. Everything but the name is the
/// writer thread's once the first block is on its way.
struct OutputTarget {
  std::string name;  ///< For messages: "stdout", a path.
  int fd = -1;
  base::UniqueFd owned;                  ///< Holds `fd` where it is ours to close.
  std::optional<TerminalScreen> screen;  ///< Where it is a terminal that can rewrite a line.
  bool is_broken = false;                ///< Nobody reads it any more (EPIPE and the like): bytes are dropped.
  bool has_complained = false;
  std::uint64_t lost_bytes = 0;
};

/// Thread rules: `append`, `fence` and `bytes_done` from any thread. The thread starts with the first block, with every
/// signal blocked, and is joined by `stop` or the destructor; only one that hangs in the kernel (a dead NFS server) is
/// let go.
class OutputWriter {
 public:
  enum class Kind { kBytes, kLines, kInPlace };

  /// Called on the writer's thread, once per target: writing to `target` failed with errno `error`.
  using OnError = std::function<void(const OutputTarget& target, int error)>;

  explicit OutputWriter(OnError on_error);
  ~OutputWriter();
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;

  /// Queues bytes for `target`. `quota` may be null: bytes of our own, which are few. `owner` matters on a terminal
  /// only (TerminalScreen).
  void append(const std::shared_ptr<OutputTarget>& target, std::string bytes, Kind kind = Kind::kBytes, int owner = 0,
              std::shared_ptr<Quota> quota = nullptr);

  /// `reached` runs once everything appended before is written: on the writer's thread, or here and now when nothing is
  /// waiting.
  void fence(std::function<void()> reached);

  /// Blocks until everything appended so far is written, at most `limit`. True when it is.
  bool flush(std::chrono::milliseconds limit);

  /// Writes what is waiting, at most `limit`; then ends the thread, in the middle of a write if it must be.
  void stop(std::chrono::milliseconds limit);

  /// Grows while anything is being written.
  std::uint64_t bytes_done() const;

 private:
  struct Item;
  struct State;  ///< Shared with the thread, which may outlive this object by a write that cannot be interrupted.

  void push(Item item);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

/// A target with the writer that serves it: what a stream is given to write to.
struct Sink {
  OutputWriter* writer = nullptr;
  std::shared_ptr<OutputTarget> target;

  bool is_terminal() const { return target->screen.has_value(); }
  void bytes(std::string block, std::shared_ptr<Quota> quota = nullptr) {
    writer->append(target, std::move(block), OutputWriter::Kind::kBytes, 0, std::move(quota));
  }
  void lines(std::string block, int owner, std::shared_ptr<Quota> quota = nullptr) {
    writer->append(target, std::move(block), OutputWriter::Kind::kLines, owner, std::move(quota));
  }
  void in_place(std::string text, int owner) {
    writer->append(target, std::move(text), OutputWriter::Kind::kInPlace, owner);
  }
};

}  // namespace tensorplay::agent
