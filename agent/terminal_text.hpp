/// What text on a terminal is made of: UTF-8 characters that take no, one or two columns, and escape sequences that
/// take none. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tensorplay::agent {

/// Length in bytes of the UTF-8 character that starts `text` (not empty); 0 when it is not one.
std::size_t utf8_length(std::string_view text);

/// `text` with a '?' for each byte that is no part of a UTF-8 character.
std::string valid_utf8(std::string_view text);

/// Length in bytes of the escape sequence that starts `text` (its first byte is ESC): ESC [ ... letter, ESC ] ... BEL,
/// or two bytes.
std::size_t escape_length(std::string_view text);

/// `text` cut so that it takes at most `columns`. Escape sequences survive, and when any was seen colours are reset
/// behind the cut; tabs become a blank, other control characters go.
std::string cut_to_columns(std::string_view text, int columns);

/// Columns that `text` takes.
int columns_of(std::string_view text);

}  // namespace tensorplay::agent
