/// The end of a round's output: waits until every stream has ended and everything is written, but not for ever. Who
/// holds a pipe open after the deadline is given up; a file or console gets five times as long, and more for as long as
/// it takes bytes: a disk or a reader on a busy machine may stand still for seconds.
#pragma once

#include "agent/output_writer.hpp"

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace tensorplay::agent {

/// Thread rules: loop thread only. Destroying it forgets `done`.
class OutputDrain {
 public:
  struct Streams {
    std::function<bool()> are_open;  ///< Any stream that has not ended.
    std::function<void()> give_up;   ///< End those.
  };

  /// Begins. The writers are waited for in their order: who is told of another's errors comes behind it. `done` is
  /// called from the loop, once, never from within this.
  OutputDrain(asio::io_context& loop, std::vector<OutputWriter*> writers, Streams streams,
              std::chrono::milliseconds limit, std::function<void()> done);
  ~OutputDrain();
  OutputDrain(const OutputDrain&) = delete;
  OutputDrain& operator=(const OutputDrain&) = delete;

  /// A stream has ended: look whether it was the last.
  void stream_ended();

 private:
  /// Where the writers' threads report to; they may do so after this object and its loop are gone.
  struct Mailbox;

  void arm(std::chrono::milliseconds time);
  void deadline_passed();
  void begin_fences();
  void set_next_fence();
  void finish();
  std::uint64_t bytes_done() const;

  asio::io_context& loop_;
  std::vector<OutputWriter*> writers_;
  Streams streams_;
  std::chrono::milliseconds limit_;
  std::function<void()> done_;
  asio::steady_timer timer_;
  std::shared_ptr<Mailbox> mailbox_;
  std::uint64_t bytes_seen_ = 0;
  std::size_t next_writer_ = 0;
  bool has_set_fences_ = false;
};

}  // namespace tensorplay::agent
