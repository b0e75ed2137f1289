#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorplay::rendezvous {

/// An HTTP/1.1 response as it comes in: status and body, whole, chunked, or up to the end of the connection. As much of
/// HTTP as a JSON gateway speaks: no compression, no redirection. (Debian's HTTP libraries for C++ bring OpenSSL with
/// them, which would cost every start of tprun more than all the rest of it.)
/// A core without I/O. Thread rules: none of its own; one user at a time.
class HttpResponse {
 public:
  static constexpr std::size_t kMaxHeadBytes = 64 << 10;
  static constexpr std::size_t kMaxBodyBytes = 1 << 20;

  void receive(std::string_view bytes);
  void peer_closed();

  bool is_complete() const noexcept { return step_ == Step::kDone; }
  /// Why it cannot be understood; empty while it can.
  const std::string& error() const noexcept { return error_; }

  int status() const noexcept { return status_; }             ///< 0 before it is known.
  const std::string& body() const noexcept { return body_; }  ///< As far as it has come.

 private:
  enum class Step : std::uint8_t { kStatus, kHeader, kBody, kToEnd, kChunkSize, kChunk, kChunkEnd, kTrailer, kDone };

  bool advance();
  bool take_line(std::string& line);
  void read_status(const std::string& line);
  void read_header(const std::string& line);
  void begin_body();
  void read_chunk_size(const std::string& line);
  bool take_body();
  void fail(std::string why);

  Step step_ = Step::kStatus;
  std::string input_;
  std::size_t head_bytes_ = 0;
  int status_ = 0;
  bool is_chunked_ = false;
  bool has_length_ = false;
  std::uint64_t left_ = 0;  ///< Of the body, or of the current chunk.
  std::string body_;
  std::string error_;
};

}  // namespace tensorplay::rendezvous
