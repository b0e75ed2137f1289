/// How tpstore shows bytes to people and to programs.
#pragma once

#include "apps/tpstore/arguments.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace tpstore {

/// Whether the bytes are UTF-8 without control characters other than newline and tab.
bool is_readable(std::string_view bytes);

/// The bytes themselves when readable, else with every other byte escaped as \x1f.
std::string as_text(std::string_view bytes);

/// as_text() on one line of at most `width` characters, told to be shortened by "...".
std::string as_preview(std::string_view bytes, std::size_t width);

/// A string when the bytes are readable, else {"base64": "..."}.
nlohmann::json as_json(std::string_view bytes);

/// Prints a value as the format wants it: text and json with a newline, raw without.
void print_value(Format format, std::string_view bytes);

/// Prints a number, or any other JSON value, on a line.
void print_line(std::string_view text);

}  // namespace tpstore
