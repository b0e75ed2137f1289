#include "agent/terminal_text.hpp"

namespace tensorplay::agent {
namespace {

struct Character {
  std::size_t bytes;
  int columns;
};

/// The character that starts `text`: East Asian wide ones and emoji take two columns, combining marks none.
Character character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  std::size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length > text.size()) length = text.size();
  if (length == 1) return {1, first >= 0x20 && first != 0x7F && (first & 0xC0) != 0x80 ? 1 : 0};
  char32_t code = first & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = (code << 6) | (byte(i) & 0x3Fu);
  const auto within = [code](char32_t low, char32_t high) { return code >= low && code <= high; };
  if (within(0x300, 0x36F) || within(0x200B, 0x200F) || within(0xFE00, 0xFE0F)) return {length, 0};
  const bool is_wide = within(0x1100, 0x115F) || within(0x2E80, 0xA4CF) || within(0xAC00, 0xD7A3) ||
                       within(0xF900, 0xFAFF) || within(0xFE30, 0xFE6F) || within(0xFF00, 0xFF60) ||
                       within(0x1F300, 0x1FAFF) || within(0x20000, 0x3FFFD);
  return {length, is_wide ? 2 : 1};
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  std::size_t length = 0;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) length = 2;
  if (first >= 0xE0 && first < 0xF0) length = 3;
  if (first >= 0xF0 && first < 0xF5) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) out += '?';
    out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {
    for (std::size_t i = 2; i < text.size(); ++i) {
      if (text[i] >= 0x40 && text[i] <= 0x7E) return i + 1;
    }
    return text.size();
  }
  if (text[1] == ']') {
    for (std::size_t i = 2; i < text.size(); ++i) {
      if (text[i] == '\a') return i + 1;
      if (text[i] == '\\' && text[i - 1] == 0x1B) return i + 1;
    }
    return text.size();
  }
  return 2;
}

std::string cut_to_columns(std::string_view text, int columns) {
  std::string out;
  bool has_escapes = false;
  int used = 0;
  std::size_t i = 0;
  while (i < text.size()) {
    const std::string_view rest = text.substr(i);
    if (rest[0] == 0x1B) {
      const std::size_t length = escape_length(rest);
      has_escapes = true;
      out.append(rest.substr(0, length));
      i += length;
      continue;
    }
    const Character character = character_at(rest);
    if (used + character.columns > columns) break;
    used += character.columns;
    // A control character inside a line would move the cursor somewhere; a tab would make its width unknown.
    if (static_cast<unsigned char>(rest[0]) >= 0x20) {
      out.append(rest.substr(0, character.bytes));
    } else if (rest[0] == '\t' && used < columns) {
      out += ' ';
      ++used;
    }
    i += character.bytes;
  }
  if (has_escapes) out += "\x1b[0m";
  return out;
}

int columns_of(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    if (text[0] == 0x1B) {
      text.remove_prefix(escape_length(text));
      continue;
    }
    const Character character = character_at(text);
    columns += character.columns;
    text.remove_prefix(character.bytes);
  }
  return columns;
}

}  // namespace tensorplay::agent
