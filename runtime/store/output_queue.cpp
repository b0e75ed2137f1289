#include "runtime/store/output_queue.hpp"

namespace tensorplay::store {

namespace {
// Below this copying costs less than a piece of its own.
constexpr std::size_t kShareFrom = 4096;
constexpr std::size_t kFullPiece = 64 << 10;
constexpr std::size_t kKeptCapacity = 512;
}  // namespace

void OutputQueue::put(std::string_view bytes) {
  if (first_ == pieces_.size() || pieces_.back().shared || pieces_.back().own.size() > kFullPiece) {
    pieces_.emplace_back();
  }
  pieces_.back().own.append(bytes);
  size_ += bytes.size();
}

void OutputQueue::put_value(const Blob& value) {
  put_u64(value ? value->size() : 0);
  if (!value) return;
  if (value->size() < kShareFrom) return put(*value);
  pieces_.push_back({{}, value});
  size_ += value->size();
}

std::size_t OutputQueue::fill(iovec* pieces, std::size_t capacity) const {
  std::size_t count = 0;
  for (std::size_t i = first_; i < pieces_.size() && count < capacity; ++i) {
    const auto& bytes = pieces_[i].bytes();
    const auto skipped = i == first_ ? offset_ : 0;
    pieces[count++] = {const_cast<char*>(bytes.data()) + skipped, bytes.size() - skipped};
  }
  return count;
}

void OutputQueue::consume(std::size_t count) {
  size_ -= count;
  if (size_ == 0) return clear();
  offset_ += count;
  while (offset_ >= pieces_[first_].bytes().size()) {
    offset_ -= pieces_[first_].bytes().size();
    pieces_[first_] = Piece();
    ++first_;
  }
  // Keep the front of the vector from growing without end under a reader that never quite catches up.
  if (first_ > 64 && first_ * 2 > pieces_.size()) {
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

void OutputQueue::clear() {
  // The buffer of small replies is kept for the next one.
  if (pieces_.size() == 1 && !pieces_.front().shared && pieces_.front().own.capacity() <= kKeptCapacity) {
    pieces_.front().own.clear();
  } else {
    pieces_ = {};
  }
  first_ = 0;
  offset_ = 0;
  size_ = 0;
}

}  // namespace tensorplay::store
