/// The file in which a worker tells the agent why it fails.
///
///     {"message": {"message": "std::runtime_error: no data",
///                  "extraInfo": {"py_callstack": "...", "timestamp": "1764452181", "thrown_at": 1764452181.123456}}}
///
/// This is the form of torch's `record`. `timestamp` holds whole seconds, because torch's agent reads an integer;
/// `thrown_at` has the fraction.
#pragma once

#include "runtime/elastic/throw_log.hpp"

#include <string>

namespace tensorplay::distributed::elastic {

/// Where the agent wants it (TORCHELASTIC_ERROR_FILE); empty: nowhere.
std::string error_file_path();

/// The file's text. `call_stack` may be empty.
std::string error_file_text(const Thrown& thrown, const std::string& call_stack);

/// Writes it beside `path` and renames it into place: a reader sees all or nothing. False, silently, when it cannot be
/// written: the process is failing already and has something better to say.
bool write_error_file(const std::string& path, const std::string& text) noexcept;

}  // namespace tensorplay::distributed::elastic
