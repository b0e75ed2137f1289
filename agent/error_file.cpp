#include "agent/error_file.hpp"

#include "agent/atomic_file.hpp"
#include "agent/terminal_text.hpp"
#include "rendezvous/failure_words.hpp"
#include "runtime/base/fd.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

#include <sys/stat.h>

namespace tensorplay::agent {
namespace {

using nlohmann::json;

/// Deeper than any error file; a megabyte of brackets must not keep the loop busy.
constexpr std::size_t kDeepest = 64;
constexpr std::size_t kReadAtMost = std::size_t{1} << 20;
constexpr std::size_t kMessageAtMost = std::size_t{16} << 10;
constexpr std::size_t kTracebackAtMost = std::size_t{32} << 10;

/// What a terminal and a log can show: valid UTF-8, no control characters but line ends and tabs, no escape sequences.
std::string showable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const unsigned char c = static_cast<unsigned char>(text.front());
    std::size_t length = 1;
    if (c == 0x1B) {
      length = escape_length(text);
    } else if (c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7F)) {
      out += text.front();
    } else if (c >= 0x80) {
      length = utf8_length(text);
      // U+0080 to U+009F are control characters too.
      const bool is_control = length == 2 && c == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
      if (length == 0) out += '?';
      if (!is_control) out += text.substr(0, length);
      length = std::max(length, std::size_t{1});
    }
    text.remove_prefix(length);
  }
  return out;
}

/// Words whose quotes are part of how somebody wrote them down, not of what is said: "\"no data\"".
std::string_view without_quotes(std::string_view text) {
  const bool is_quoted = text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
                         text.back() == text.front() && text.find(text.front(), 1) == text.size() - 1;
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

std::string first_part(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  text.resize(most);
  return valid_utf8(text) + " ...";
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t start = text.find_first_not_of(kBlanks);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kBlanks) - start + 1);
}

std::string message_of(std::string_view text) {
  const std::string shown = showable(text);
  return first_part(std::string(without_quotes(trimmed(shown))), kMessageAtMost);
}

/// A traceback's news is at its end.
std::string last_part(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  return "... " + valid_utf8(std::string_view(text).substr(text.size() - most));
}

std::optional<double> plausible_time(double seconds) {
  constexpr double kFarFuture = 1e11;  // The year 5138: milliseconds land behind it.
  if (!std::isfinite(seconds) || seconds <= 0 || seconds >= kFarFuture) return std::nullopt;
  return seconds;
}

/// Picks what we know out of the stream of a JSON text, so that a text which breaks off gives what came before.
class Picker : public nlohmann::json_sax<json> {
 public:
  ErrorFileContents found;
  bool has_message = false;

  bool null() override { return value_done(); }
  bool boolean(bool value) override { return take_text(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return take_number(static_cast<double>(value), std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return take_number(static_cast<double>(value), std::to_string(value));
  }
  bool number_float(number_float_t value, const string_t& written) override { return take_number(value, written); }
  bool string(string_t& value) override {
    if (is_at("timestamp")) {
      char* end = nullptr;
      const double seconds = std::strtod(value.c_str(), &end);
      if (end != value.c_str()) take_time(seconds);
      return value_done();
    }
    return take_text(value);
  }
  bool binary(binary_t&) override { return value_done(); }
  bool start_object(std::size_t) override { return open(); }
  bool key(string_t& name) override {
    path_.back() = name;
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t, const std::string& last_token, const nlohmann::detail::exception&) override {
    found.is_complete = false;
    // The text may have broken off in the middle of the very string we are after.
    const bool is_taken = is_at("message") ? has_message : !found.traceback.empty();
    if (last_token.size() > 1 && last_token[0] == '"' && !is_taken) {
      std::string text = last_token.substr(1);
      for (std::size_t at = 0; (at = text.find("\\n", at)) != std::string::npos;) text.replace(at, 2, "\n");
      take_text(text);
    }
    return false;
  }

 private:
  bool open() {
    path_.emplace_back();
    return path_.size() <= kDeepest;
  }
  bool close() {
    path_.pop_back();
    return true;
  }
  bool value_done() { return true; }

  /// The keys on the way here, without those that only group ("message" around everything, "extraInfo").
  bool is_at(std::string_view name) const {
    if (path_.empty() || path_.size() > 3 || path_.back() != name) return false;
    if (path_.size() == 1) return true;
    if (path_.size() == 2) return path_[0] == "message" || path_[0] == "extraInfo";
    return path_[0] == "message" && path_[1] == "extraInfo";
  }

  bool take_text(const std::string& value) {
    if ((is_at("message") && path_.size() <= 2) || path_.empty()) {
      found.message = message_of(value);
      has_message = true;
    } else if (is_at("py_callstack") || is_at("traceback")) {
      found.traceback = last_part(showable(value), kTracebackAtMost);
    }
    return true;
  }
  bool take_number(double value, const std::string& written) {
    if (is_at("timestamp")) {
      take_time(value);
      return true;
    }
    if (is_at("thrown_at")) {
      take_time(value);
      has_exact_time_ = found.thrown_at.has_value();
      return true;
    }
    return path_.empty() ? true : take_text(written);
  }
  void take_time(double seconds) {
    if (has_exact_time_) return;
    if (const auto time = plausible_time(seconds)) found.thrown_at = time;
  }

  std::vector<std::string> path_;
  bool has_exact_time_ = false;  // Our runtime's `thrown_at` beside torch's whole seconds.
};

bool is_printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != 0x1B;
  });
}

/// At most kReadAtMost bytes of a regular file; empty for anything else.
std::string read_regular_file(const std::string& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string text(std::min(static_cast<std::size_t>(status.st_size), kReadAtMost), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + filled, text.size() - filled);
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

}  // namespace

std::optional<ErrorFileContents> parse_error_text(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  if (text[0] != '{' && text[0] != '[' && text[0] != '"') {
    // No JSON: words are words all the same.
    if (!is_printable(text)) return std::nullopt;
    ErrorFileContents contents;
    contents.message = message_of(text);
    return contents;
  }
  Picker picker;
  json::sax_parse(text, &picker, json::input_format_t::json, false);
  if (picker.found.message.empty() && picker.found.traceback.empty() && !picker.found.thrown_at) return std::nullopt;
  return picker.found;
}

std::optional<ErrorFileContents> read_error_file(const std::string& path) {
  if (path.empty()) return std::nullopt;
  return parse_error_text(read_regular_file(path));
}

void add_error_file(rendezvous::WorkerFailure& failure, const std::string& path) {
  auto contents = read_error_file(path);
  if (!contents) return;
  failure.message = std::move(contents->message);
  failure.traceback = std::move(contents->traceback);
  failure.thrown_at = contents->thrown_at;
  failure.error_file = path;
}

std::string parent_error_text(const rendezvous::WorkerFailure& root_cause) {
  std::string message = root_cause.message;
  // With its subject: the launcher above puts words of its own in front.
  if (message.empty()) message = rendezvous::describe_failure(root_cause, false);
  const double time = root_cause.thrown_at.value_or(root_cause.ended_at);
  const json object = {{"message",
                        {{"message", message},
                         {"errorCode", root_cause.signal != 0 ? -root_cause.signal : root_cause.exit_code},
                         {"extraInfo",
                          {{"py_callstack", root_cause.traceback},
                           {"timestamp", std::to_string(static_cast<long long>(time))},
                           {"rank", root_cause.rank},
                           {"host", root_cause.host}}}}}};
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

void write_parent_error_file(const std::string& path, const rendezvous::WorkerFailure& root_cause) {
  write_file_atomically(path, parent_error_text(root_cause));
}

}  // namespace tensorplay::agent
