#include "apps/tpstore/output.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <cstdio>

namespace tpstore {
namespace {

/// The length of the UTF-8 character at the start of `bytes`; 0 when there is none.
std::size_t utf8_length(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond Unicode.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90)) return 0;
  return length;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

std::string escaped(char c) {
  std::array<char, 5> text{};
  std::snprintf(text.data(), text.size(), "\\x%02x", static_cast<unsigned char>(c));
  return text.data();
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0);
    }
    for (std::size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 0x3F] : '=';
  }
  return text;
}

}  // namespace

bool is_readable(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    if (length == 0) return false;
    if (length == 1 && is_control(bytes[0]) && bytes[0] != '\n' && bytes[0] != '\t') return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string as_text(std::string_view bytes) {
  if (is_readable(bytes)) return std::string(bytes);
  std::string text;
  for (const char c : bytes)
    text += is_control(c) || static_cast<unsigned char>(c) >= 0x80 ? escaped(c) : std::string(1, c);
  return text;
}

std::string as_preview(std::string_view bytes, std::size_t width) {
  const bool readable = is_readable(bytes);
  std::string text;
  std::size_t columns = 0;
  while (!bytes.empty()) {
    const std::size_t length = readable ? utf8_length(bytes) : 1;
    const bool is_plain = length > 1 || (!is_control(bytes[0]) && static_cast<unsigned char>(bytes[0]) < 0x80);
    std::string next = is_plain           ? std::string(bytes.substr(0, length))
                       : bytes[0] == '\n' ? "\\n"
                       : bytes[0] == '\t' ? "\\t"
                                          : escaped(bytes[0]);
    columns += length > 1 ? 1 : next.size();
    if (columns > width) return text + "...";
    text += next;
    bytes.remove_prefix(length);
  }
  return text;
}

nlohmann::json as_json(std::string_view bytes) {
  if (is_readable(bytes)) return std::string(bytes);
  return {{"base64", base64(bytes)}};
}

void print_value(Format format, std::string_view bytes) {
  switch (format) {
    case Format::kRaw:
      std::fwrite(bytes.data(), 1, bytes.size(), stdout);
      return;
    case Format::kJson:
      return print_line(as_json(bytes).dump());
    case Format::kText:
      return print_line(as_text(bytes));
  }
}

void print_line(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

}  // namespace tpstore
