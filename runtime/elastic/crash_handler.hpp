#pragma once

#include "runtime/elastic/throw_log.hpp"

#include <string>

namespace tensorplay::distributed::elastic {

/// Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT while it lives: writes the error file with a native stack trace,
/// prints the trace to stderr, and lets the signal end the process. Also for std::terminate, with the exception.
///
/// The handler runs on a stack of its own and uses neither the heap nor locks until the file is written; only then it
/// tries for readable C++ names, for two seconds at most. A signal that the program handles itself is left alone.
/// Thread rules: one object at a time.
class CrashHandler {
 public:
  /// `error_file`: empty to write none.
  explicit CrashHandler(const std::string& error_file);
  ~CrashHandler();
  CrashHandler(const CrashHandler&) = delete;
  CrashHandler& operator=(const CrashHandler&) = delete;
};

}  // namespace tensorplay::distributed::elastic
