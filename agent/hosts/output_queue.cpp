#include "agent/hosts/output_queue.hpp"

#include <climits>

#include <algorithm>
#include <cerrno>
#include <unistd.h>

namespace tensorplay::agent {

void OutputQueue::push(std::string_view bytes) {
  if (is_broken_) return;
  if (is_empty()) {
    bytes_.clear();
    at_ = 0;
  }
  bytes_ += bytes;
}

bool OutputQueue::write_some() {
  if (is_empty()) return !is_broken_;
  const ssize_t written = ::write(fd_, bytes_.data() + at_, std::min<std::size_t>(size(), PIPE_BUF));
  if (written >= 0) {
    at_ += static_cast<std::size_t>(written);
    return true;
  }
  if (errno == EINTR || errno == EAGAIN) return true;
  is_broken_ = true;
  at_ = bytes_.size();
  return false;
}

}  // namespace tensorplay::agent
