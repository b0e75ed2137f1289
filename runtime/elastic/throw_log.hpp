/// What this thread has thrown, noted at the moment of the throw.
///
/// A destructor that runs while an exception unwinds cannot ask which one it is, and a handler far above cannot know
/// when it was thrown. So the throw itself is noted: throw_log.cpp stands in front of the C++ runtime's __cxa_throw.
/// Where that is not possible (a program that links libstdc++ statically) notes are missing, and readers fall back on
/// what they know themselves.
/// Thread rules: each thread has its own notes.
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>

namespace tensorplay::distributed::elastic {

using WallClock = std::chrono::system_clock;

struct Thrown {
  std::string type;  ///< "std::runtime_error"; empty when unknown.
  std::string text;  ///< what(); empty for exceptions that have none.
  WallClock::time_point when;
};

/// The exception that is unwinding in this thread, the outermost where there are several; nullopt when none is noted.
std::optional<Thrown> unwinding_exception();

/// Type and text of a caught exception, with the time of its throw, or the time now where that was not noted.
Thrown describe(const std::exception_ptr& error);

/// Notes that an exception which another thread threw goes on in this one.
void note_rethrow(const std::exception_ptr& error) noexcept;

}  // namespace tensorplay::distributed::elastic
