/// Bytes that wait for a descriptor to take them: poll says when, nothing blocks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tensorplay::agent {

class OutputQueue {
 public:
  explicit OutputQueue(int fd) : fd_(fd) {}

  int fd() const { return fd_; }
  bool is_empty() const { return at_ == bytes_.size(); }
  std::size_t size() const { return bytes_.size() - at_; }
  /// Whoever fills it should wait until some of it is gone.
  bool is_full() const { return size() > kFull; }
  void push(std::string_view bytes);

  /// After poll has said POLLOUT: writes a piece that a pipe then takes at once. False when nobody reads any more: what
  /// is left and what comes later is dropped.
  bool write_some();

 private:
  static constexpr std::size_t kFull = 1U << 20U;

  int fd_;
  std::string bytes_;
  std::size_t at_ = 0;
  bool is_broken_ = false;
};

}  // namespace tensorplay::agent
