/// The logging seam: what the runtime and the agent tell people about themselves, one line at a time.
///
/// Only log.cpp knows the logging library, so everything else compiles fast and does not depend on it. A message that
/// is not shown costs one relaxed load: give a lambda where making the text costs something.
/// By default lines go to stderr from level WARNING up; TP_CPP_LOG_LEVEL or TORCH_CPP_LOG_LEVEL (DEBUG, INFO, WARNING,
/// ERROR, FATAL, or 0 to 3 from INFO to FATAL) say otherwise. With INFO, TP_DISTRIBUTED_DEBUG=INFO adds debug lines and
/// DETAIL everything, as in c10d. A program calls configure() to speak in its own name.
/// Thread rules: everything may be called from any thread; a line is never torn. Nothing here throws once the text
/// is made.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tensorplay::base::log {

enum class Level : int { kTrace, kDebug, kInfo, kWarning, kError, kOff };

/// The level that a word or digit names, in any case; nullopt for anything else. FATAL and 3 show nothing but errors
/// that end the process, which this library reports by exception: they mean kOff.
std::optional<Level> parse_level(std::string_view text);

/// What the two variables together ask for, nullopt where one is unset. An unknown level counts as WARNING.
Level effective_level(std::optional<std::string_view> cpp_level, std::optional<std::string_view> debug_level);

/// What the environment asks for; WARNING when it asks for nothing. One line on stderr for what parse_level does not
/// know.
Level level_from_environment();

struct Options {
  Level level = level_from_environment();
  /// With a name lines read "name: text". Without one "[W 10:15:00.123456 rank 2] text", rank as RANK had it.
  std::string program;
  /// Takes each finished line (no newline) instead of stderr. Called with a lock held: it must not log.
  std::function<void(Level, std::string_view line)> sink;
};

/// Replaces the options; those of a process that never calls this are the default ones.
void configure(Options options);

/// Whether a message of this level is shown.
bool is_on(Level level) noexcept;

/// Writes one line if the level is shown. Newlines inside the text are kept.
void write(Level level, std::string_view text) noexcept;

/// Text, or a callable that makes it, evaluated only when the level is on.
template <typename Text>
void write_lazily(Level level, Text&& text) {
  if (!is_on(level)) return;
  if constexpr (std::is_invocable_v<Text>) {
    write(level, text());
  } else {
    write(level, text);
  }
}

template <typename Text>
void trace(Text&& text) {
  write_lazily(Level::kTrace, std::forward<Text>(text));
}
template <typename Text>
void debug(Text&& text) {
  write_lazily(Level::kDebug, std::forward<Text>(text));
}
template <typename Text>
void info(Text&& text) {
  write_lazily(Level::kInfo, std::forward<Text>(text));
}
template <typename Text>
void warning(Text&& text) {
  write_lazily(Level::kWarning, std::forward<Text>(text));
}
template <typename Text>
void error(Text&& text) {
  write_lazily(Level::kError, std::forward<Text>(text));
}

/// As write(), but at most once each 30 s for one key; the next line that comes through says how many did not.
void write_limited(Level level, std::string_view key, std::string_view text) noexcept;

/// Decides which messages of a key may pass. No clock, no lock: time comes in.
class RateLimiter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit RateLimiter(std::chrono::nanoseconds interval = std::chrono::seconds(30)) : interval_(interval) {}

  /// How many messages of `key` were held back since the last that passed, or nullopt when this one is held back too.
  /// Memory is bounded: keys that have been quiet for an interval are forgotten when there are many.
  std::optional<std::uint64_t> admit(std::string_view key, TimePoint now);

 private:
  struct Entry {
    TimePoint passed_at;
    std::uint64_t held_back = 0;
  };
  void forget_quiet_keys(TimePoint now);

  std::chrono::nanoseconds interval_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace tensorplay::base::log
