#include "rendezvous/failure_words.hpp"

#include "rendezvous/failure_judgement.hpp"

#include <algorithm>
#include <csignal>
#include <string_view>

namespace tensorplay::rendezvous {
namespace {

constexpr std::size_t kLongestError = 200;

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// At most `kLongestError` bytes, cut between characters.
std::string shortened(std::string text) {
  if (text.size() <= kLongestError) return text;
  std::size_t end = kLongestError;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

/// "ValueError: no data", "KeyboardInterrupt": the name of an error, and not a sentence of its own.
bool begins_with_a_name(std::string_view error) {
  const auto end = error.find(' ');
  if (error.empty() || end == 0) return false;
  return end == error.npos ? error.find_first_not_of("0123456789.-") != error.npos : error[end - 1] == ':';
}

}  // namespace

std::string told_error(const WorkerFailure& failure) {
  if (!failure.message.empty()) return first_line(failure.message);
  constexpr std::string_view kWhat = "  what():  ";
  const auto& lines = failure.last_lines;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->starts_with(kWhat)) return line->substr(kWhat.size());
    if (line->find("Traceback (most recent call last):") == std::string::npos) continue;
    // Behind the calls, which are indented, stands the exception.
    const auto exception = std::find_if(line.base(), lines.end(),
                                        [](const std::string& text) { return !text.empty() && text.front() != ' '; });
    return exception == lines.end() ? std::string() : *exception;
  }
  return {};
}

std::string describe_failure(const WorkerFailure& failure, bool with_host) {
  std::string text = "rank " + std::to_string(failure.rank);
  if (with_host && !failure.host.empty()) text += " on " + failure.host;
  if (failure.is_startup_failure) {
    text += " could not be started";
    if (!failure.message.empty()) text += ": " + first_line(failure.message);
    return text;
  }
  const std::string error = shortened(told_error(failure));
  const std::string failed = text + " failed" + (begins_with_a_name(error) ? " with " : ": ") + error;
  if (failure.signal == 0 && !error.empty()) return failed + " (exit code " + std::to_string(failure.exit_code) + ")";
  if (was_overtaken(failure) && !error.empty()) return failed + " and was stopped before it had ended";
  if (failure.signal == SIGABRT && !error.empty()) return text + " " + describe_end(failure) + ": " + error;
  return text + " " + describe_end(failure);
}

}  // namespace tensorplay::rendezvous
