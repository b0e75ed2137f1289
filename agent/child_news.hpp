/// SIGCHLD as an event of the loop: one for workers that end and for orphans that fall to us alike.
#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include <functional>
#include <memory>

namespace tensorplay::agent {

/// Thread rules: loop thread only, and it must be the main thread or one with SIGCHLD blocked; it blocks it for this
/// one.
class ChildNews {
 public:
  /// `on_news` is called on the loop when a child has ended: at least once after the last of several ends. It may
  /// destroy this object. Throws std::system_error.
  ChildNews(asio::io_context& loop, std::function<void()> on_news);
  ~ChildNews();
  ChildNews(const ChildNews&) = delete;
  ChildNews& operator=(const ChildNews&) = delete;

 private:
  void wait();

  std::function<void()> on_news_;
  asio::posix::stream_descriptor signals_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tensorplay::agent
