#include "agent/stderr_tail.hpp"

#include "agent/terminal_text.hpp"
#include "runtime/base/fd.hpp"

#include <algorithm>
#include <fcntl.h>
#include <unistd.h>

#include <sys/stat.h>

namespace tensorplay::agent {
namespace {

constexpr std::size_t kLongestQuote = 500;
constexpr std::string_view kTraceback = "Traceback (most recent call last):";

/// What stands on the terminal's line at last: behind the last carriage return that has something behind it.
std::string_view last_refresh(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t start = line.rfind('\r');
  return start == std::string_view::npos ? line : line.substr(start + 1);
}

std::string quotable(std::string_view line) {
  line = last_refresh(line);
  std::string out;
  for (std::size_t i = 0; i < line.size();) {
    if (out.size() >= kLongestQuote) {
      out += "...";
      break;
    }
    const unsigned char c = static_cast<unsigned char>(line[i]);
    if (c == 0x1B) {
      i += escape_length(line.substr(i));
    } else if (c == '\t') {
      out += "    ";
      ++i;
    } else if (c < 0x20 || c == 0x7F) {
      ++i;
    } else if (const std::size_t length = utf8_length(line.substr(i)); length > 0) {
      out += line.substr(i, length);
      i += length;
    } else {
      out += '?';
      ++i;
    }
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

std::vector<std::string> quotable_lines(std::string_view text, std::size_t count, bool is_cut) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    lines.push_back(quotable(text.substr(0, newline)));
    if (newline == std::string_view::npos) break;
    text.remove_prefix(newline + 1);
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (is_cut && lines.size() > 1) lines.erase(lines.begin());
  if (lines.size() <= count || count == 0) {
    if (count == 0) lines.clear();
    return lines;
  }
  // The last traceback's head says that what follows is one; between it and the end the oldest calls are left out.
  const auto head = std::find_if(lines.rbegin(), lines.rend(),
                                 [](const std::string& line) { return line.find(kTraceback) != std::string::npos; });
  const std::size_t head_index =
      head == lines.rend() ? lines.size() : lines.size() - 1 - static_cast<std::size_t>(head - lines.rbegin());
  std::vector<std::string> kept;
  if (count > 3 && head_index < lines.size() - count) {
    const std::size_t tail = count - 2;
    kept.push_back(lines[head_index]);
    kept.push_back("  ... (" + std::to_string(lines.size() - tail - head_index - 1) + " lines)");
    kept.insert(kept.end(), lines.end() - static_cast<std::ptrdiff_t>(tail), lines.end());
    return kept;
  }
  return {lines.end() - static_cast<std::ptrdiff_t>(count), lines.end()};
}

void StderrTail::add(std::string_view bytes) {
  if (bytes.size() >= kKept) {
    is_cut_ = is_cut_ || !kept_.empty() || bytes.size() > kKept;
    kept_.assign(bytes.substr(bytes.size() - kKept));
    return;
  }
  // Trimmed at twice the size, so that the copying is paid for once in a while only.
  if (kept_.size() + bytes.size() > 2 * kKept) {
    kept_.erase(0, kept_.size() + bytes.size() - kKept);
    is_cut_ = true;
  }
  kept_ += bytes;
}

std::vector<std::string> StderrTail::lines(std::size_t count) const {
  return quotable_lines(kept_, count, is_cut_);
}

std::vector<std::string> last_lines_of_file(const std::string& path, std::size_t count) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  constexpr off_t kKept = static_cast<off_t>(StderrTail::kKept);
  const off_t start = status.st_size > kKept ? status.st_size - kKept : 0;
  std::string text(static_cast<std::size_t>(status.st_size - start), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got =
        ::pread(file.get(), text.data() + filled, text.size() - filled, start + static_cast<off_t>(filled));
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return quotable_lines(text, count, start > 0);
}

}  // namespace tensorplay::agent
