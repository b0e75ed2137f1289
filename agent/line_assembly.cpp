#include "agent/line_assembly.hpp"

#include "agent/terminal_text.hpp"

#include <algorithm>
#include <cstring>

namespace tensorplay::agent {
namespace {

bool is_blank(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\t'; });
}

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Text that may stand on a terminal's line: printable, or one of the few controls that progress bars use.
bool is_text(std::string_view text) {
  while (!text.empty()) {
    const unsigned char c = static_cast<unsigned char>(text[0]);
    if (c < 0x20 && c != '\t' && c != '\b' && c != '\a' && c != 0x1B) return false;
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

std::string expand_prefix(std::string_view prefix_template, const PrefixValues& values) {
  if (prefix_template.empty()) prefix_template = "[${role_name}${local_rank}]:";
  const auto value_of = [&](std::string_view name, std::string& out) {
    if (name == "role_name") {
      out += values.role_name;
    } else if (name == "rank") {
      out += std::to_string(values.rank);
    } else if (name == "local_rank") {
      out += std::to_string(values.local_rank);
    } else if (name == "hostname") {
      out += values.hostname;
    } else {
      return false;
    }
    return true;
  };
  std::string out;
  for (std::size_t i = 0; i < prefix_template.size();) {
    if (prefix_template[i] != '$') {
      out += prefix_template[i++];
      continue;
    }
    const std::string_view rest = prefix_template.substr(i + 1);
    if (rest.starts_with('$')) {
      out += '$';
      i += 2;
      continue;
    }
    const bool has_braces = rest.starts_with('{');
    const std::string_view named = has_braces ? rest.substr(1) : rest;
    const std::size_t length =
        static_cast<std::size_t>(std::find_if_not(named.begin(), named.end(), is_word_character) - named.begin());
    const bool is_closed = !has_braces || (length < named.size() && named[length] == '}');
    if (is_closed && value_of(named.substr(0, length), out)) {
      i += 1 + length + (has_braces ? 2 : 0);
    } else {
      out += prefix_template[i++];
    }
  }
  return out;
}

void LineAssembly::feed(std::string_view bytes, std::string& lines) {
  if (bytes.empty()) return;
  if (return_held_ || is_binary_ || std::memchr(bytes.data(), '\r', bytes.size()) != nullptr) {
    feed_with_returns(bytes, lines);
    return;
  }
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    if (newline == std::string_view::npos) {
      take_bounded(bytes, lines);
      return;
    }
    const std::string_view text = bytes.substr(0, newline);
    if (line_.empty() && refresh_.empty() && text.size() <= longest_) {
      // The usual line: no copy but the one into `lines`.
      lines += prefix_;
      lines.append(bytes.data(), newline + 1);
    } else {
      take_bounded(text, lines);
      end_line(lines);
    }
    bytes.remove_prefix(newline + 1);
  }
}

void LineAssembly::feed_with_returns(std::string_view bytes, std::string& lines) {
  while (!bytes.empty()) {
    if (return_held_) {
      return_held_ = false;
      if (bytes[0] == '\n') {
        // A line that ends with both: not a refresh. Its return is kept, as the worker wrote it.
        if (!line_.empty() || refresh_.empty()) take_bounded("\r", lines);
        end_line(lines);
        bytes.remove_prefix(1);
        continue;
      }
      begin_anew(lines);
    }
    const std::size_t stop = bytes.find_first_of("\r\n");
    take_bounded(bytes.substr(0, stop), lines);
    if (stop == std::string_view::npos) return;
    if (bytes[stop] == '\n') {
      end_line(lines);
    } else {
      return_held_ = true;
    }
    bytes.remove_prefix(stop + 1);
  }
}

void LineAssembly::take_bounded(std::string_view text, std::string& lines) {
  while (line_.size() + text.size() > longest_) {
    const std::size_t room = longest_ - line_.size();
    line_.append(text.data(), room);
    text.remove_prefix(room);
    refresh_.clear();
    lines += prefix_;
    lines += line_;
    lines += '\n';
    line_.clear();
  }
  line_.append(text);
}

void LineAssembly::begin_anew(std::string& lines) {
  if (is_binary_ || !is_text(line_)) {
    is_binary_ = true;
    take_bounded("\r", lines);
    return;
  }
  if (line_.empty()) return;
  ++refreshes_;
  // A bar that wipes itself with blanks is over: nothing of it is left to show.
  if (is_blank(line_)) {
    refresh_.clear();
  } else {
    refresh_.swap(line_);
  }
  line_.clear();
}

void LineAssembly::end_line(std::string& lines) {
  lines += prefix_;
  // Nothing after the last return: the terminal still shows what was before it.
  lines += line_.empty() ? refresh_ : line_;
  lines += '\n';
  line_.clear();
  refresh_.clear();
  is_binary_ = false;
}

void LineAssembly::finish(std::string& lines) {
  const bool had_return = std::exchange(return_held_, false);
  if (had_return && is_binary_) line_ += '\r';
  if (!line_.empty() || !refresh_.empty()) end_line(lines);
}

std::string_view LineAssembly::unfinished() const {
  if (is_binary_) return {};
  if (!is_blank(line_)) return line_;
  return line_.empty() ? std::string_view(refresh_) : std::string_view();
}

}  // namespace tensorplay::agent
