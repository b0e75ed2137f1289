/// A file that readers see whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace tensorplay::agent {

/// Writes `text` beside `path` and renames it into place. What is no regular file (/dev/stdout, a FIFO) is written to
/// directly; a symbolic link stays one. Throws DistError with the path and what went wrong. Blocks for as long as the
/// file system does.
void write_file_atomically(const std::string& path, std::string_view text);

/// Tries what that would do first, and leaves nothing behind. Throws the same.
void check_can_be_written(const std::string& path);

}  // namespace tensorplay::agent
