/// A worker's last words: error.json, as torch's `record` and our own runtime write it. Reading believes nothing: the
/// file may be missing, empty, half-written, huge, someone else's JSON, or no JSON at all, and none of that is an
/// error.
#pragma once

#include "rendezvous/messages.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace tensorplay::agent {

struct ErrorFileContents {
  std::string message;              ///< "ValueError: no data"; may be empty when only a traceback was found.
  std::string traceback;            ///< Call stack as text; may be empty.
  std::optional<double> thrown_at;  ///< Unix time, seconds; torch writes whole seconds, our runtime fractions.
  bool is_complete = true;          ///< False: the text broke off and this is what could be saved.
};

/// Reads at most 1 MiB of a regular file. nullopt when there is nothing in it that says anything. Never throws, never
/// blocks on a FIFO or device.
std::optional<ErrorFileContents> read_error_file(const std::string& path);

/// The same from text: the core.
std::optional<ErrorFileContents> parse_error_text(std::string_view text);

/// Copies message, traceback, time and path of the worker's error file into `failure`, where there is one.
void add_error_file(rendezvous::WorkerFailure& failure, const std::string& path);

/// What tprun leaves in its own TORCHELASTIC_ERROR_FILE for the launcher above it: torch's form, with `errorCode` (the
/// exit code, or minus the signal).
std::string parent_error_text(const rendezvous::WorkerFailure& root_cause);

/// Writes that beside `path` and renames it into place. Throws DistError with the path and what went wrong.
void write_parent_error_file(const std::string& path, const rendezvous::WorkerFailure& root_cause);

}  // namespace tensorplay::agent
