#include "rendezvous/discovery/http_response.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace tensorplay::rendezvous {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The number that the text begins with; false when it begins with none.
bool read_number(std::string_view text, int base, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end != text.data();
}

}  // namespace

void HttpResponse::receive(std::string_view bytes) {
  if (!error_.empty() || is_complete()) return;
  input_ += bytes;
  while (error_.empty() && !is_complete() && advance()) {
  }
  const bool is_in_head = step_ != Step::kBody && step_ != Step::kToEnd && step_ != Step::kChunk && !is_complete();
  if (error_.empty() && is_in_head && input_.size() > kMaxHeadBytes) fail("its head is too long");
}

void HttpResponse::peer_closed() {
  if (!error_.empty() || is_complete()) return;
  if (step_ == Step::kToEnd) {
    step_ = Step::kDone;
  } else {
    fail("the connection ended before the answer did");
  }
}

bool HttpResponse::advance() {
  std::string line;
  switch (step_) {
    case Step::kStatus:
      if (!take_line(line)) return false;
      read_status(line);
      return true;
    case Step::kHeader:
      if (!take_line(line)) return false;
      if (line.empty()) {
        begin_body();
      } else {
        read_header(line);
      }
      return true;
    case Step::kChunkSize:
      if (!take_line(line)) return false;
      read_chunk_size(line);
      return true;
    case Step::kChunkEnd:
      if (!take_line(line)) return false;
      if (!line.empty()) fail("a chunk is longer than it said");
      step_ = Step::kChunkSize;
      return true;
    case Step::kTrailer:
      if (!take_line(line)) return false;
      if (line.empty()) step_ = Step::kDone;
      return true;
    default:
      return take_body();
  }
}

bool HttpResponse::take_line(std::string& line) {
  const auto end = input_.find('\n');
  if (end == input_.npos) return false;
  head_bytes_ += end + 1;
  if (head_bytes_ > kMaxHeadBytes + body_.size()) {
    fail("its head is too long");
    return false;
  }
  line = input_.substr(0, end);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  input_.erase(0, end + 1);
  return true;
}

void HttpResponse::read_status(const std::string& line) {
  std::uint64_t status = 0;
  if (!line.starts_with("HTTP/1.") || line.size() < 12 || !read_number(std::string_view(line).substr(9), 10, status) ||
      status < 100 || status > 599) {
    return fail("it is no HTTP server");
  }
  status_ = static_cast<int>(status);
  step_ = Step::kHeader;
}

void HttpResponse::read_header(const std::string& line) {
  const auto colon = line.find(':');
  if (colon == line.npos) return fail("a header has no colon");
  const std::string name = lower(std::string_view(line).substr(0, colon));
  const std::string_view value = trimmed(std::string_view(line).substr(colon + 1));
  if (name == "content-length") {
    has_length_ = read_number(value, 10, left_);
    if (!has_length_ || left_ > kMaxBodyBytes) fail("its answer has an odd length");
  } else if (name == "transfer-encoding") {
    is_chunked_ = lower(value) == "chunked";
    if (!is_chunked_) fail("its answer is encoded as " + std::string(value.substr(0, 40)));
  }
}

void HttpResponse::begin_body() {
  if (status_ < 200) {  // "100 Continue": the answer itself follows.
    step_ = Step::kStatus;
  } else if (is_chunked_) {
    step_ = Step::kChunkSize;
  } else if (status_ == 204 || (has_length_ && left_ == 0)) {
    step_ = Step::kDone;
  } else {
    step_ = has_length_ ? Step::kBody : Step::kToEnd;
  }
}

void HttpResponse::read_chunk_size(const std::string& line) {
  if (!read_number(line, 16, left_) || left_ > kMaxBodyBytes) return fail("a chunk has an odd size");
  step_ = left_ == 0 ? Step::kTrailer : Step::kChunk;
}

bool HttpResponse::take_body() {
  if (input_.empty()) return false;
  const bool has_end = step_ != Step::kToEnd;
  const auto taken = has_end ? static_cast<std::size_t>(std::min<std::uint64_t>(left_, input_.size())) : input_.size();
  if (body_.size() + taken > kMaxBodyBytes) {
    fail("its answer is too long");
    return false;
  }
  body_.append(input_, 0, taken);
  input_.erase(0, taken);
  if (!has_end) return false;
  left_ -= taken;
  if (left_ > 0) return false;
  step_ = step_ == Step::kChunk ? Step::kChunkEnd : Step::kDone;
  return true;
}

void HttpResponse::fail(std::string why) {
  error_ = std::move(why);
}

}  // namespace tensorplay::rendezvous
