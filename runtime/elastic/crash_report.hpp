/// The error file of a process that dies by a signal, written without the heap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorplay::distributed::elastic {

/// "SIGSEGV"; "signal 42" in `spare` for those without a name here.
const char* signal_name(int signal) noexcept;

/// Makes the JSON text of error_file.hpp in `memory`: message, call stack, time. Returns its length; a text that does
/// not fit is cut inside the call stack, so that it stays whole JSON. Async-signal-safe, and pure.
std::size_t crash_report(char* memory, std::size_t capacity, const char* message, const char* call_stack,
                         std::int64_t seconds, std::int64_t microseconds) noexcept;

}  // namespace tensorplay::distributed::elastic
