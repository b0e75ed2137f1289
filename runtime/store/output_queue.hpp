#pragma once

#include "runtime/store/blob.hpp"
#include "runtime/store/wire_codec.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <sys/uio.h>

namespace tensorplay::store {

/// Bytes on their way to one peer. Small pieces are copied together, so that one send carries many replies; large
/// values are shared with the table and with other peers.
/// A core without I/O. Thread rules: none of its own; one user at a time.
class OutputQueue {
 public:
  void put_u8(std::uint8_t value) { put({reinterpret_cast<const char*>(&value), sizeof value}); }
  void put_u32(std::uint32_t value) { put({reinterpret_cast<const char*>(&value), sizeof value}); }
  void put_u64(std::uint64_t value) { put({reinterpret_cast<const char*>(&value), sizeof value}); }
  void put_i64(std::int64_t value) { put({reinterpret_cast<const char*>(&value), sizeof value}); }
  void put(std::string_view bytes);

  /// The value's length and its bytes; a null blob is an empty value.
  void put_value(const Blob& value);

  /// Bytes not yet sent, shared ones included.
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  /// Describes what is to be sent next, at most `capacity` pieces; returns how many.
  std::size_t fill(iovec* pieces, std::size_t capacity) const;

  /// Drops `count` bytes from the front: they have been sent.
  void consume(std::size_t count);

  void clear();

 private:
  struct Piece {
    std::string own;
    Blob shared;  ///< Instead of `own`.
    const std::string& bytes() const noexcept { return shared ? *shared : own; }
  };

  std::vector<Piece> pieces_;
  std::size_t first_ = 0;   ///< Pieces before this one are sent.
  std::size_t offset_ = 0;  ///< Bytes of the first piece that are sent.
  std::size_t size_ = 0;
};

}  // namespace tensorplay::store
