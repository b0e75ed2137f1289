#include "runtime/base/log.hpp"

#include "runtime/base/environment.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <memory>
#include <mutex>

namespace tensorplay::base::log {
namespace {

constexpr int kUnset = -1;
constexpr std::size_t kManyKeys = 1024;

spdlog::level::level_enum library_level(Level level) {
  switch (level) {
    case Level::kTrace:
      return spdlog::level::trace;
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      break;
  }
  return spdlog::level::off;
}

/// Percent signs mean something to the formatter; a name should not.
std::string quote_pattern(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '%') quoted += '%';
    quoted += c;
  }
  return quoted;
}

std::string pattern_for(const Options& options) {
  if (!options.program.empty()) return quote_pattern(options.program) + ": %v";
  const auto rank = env_value(env::kRank);
  return rank && !rank->empty() ? "[%L %H:%M:%S.%f rank " + quote_pattern(*rank) + "] %v" : "[%L %H:%M:%S.%f] %v";
}

/// What the process writes its lines with. Never destroyed: threads may log while the process exits.
class Writer {
 public:
  static Writer& instance() {
    static Writer* const writer = new Writer;
    return *writer;
  }

  void configure(Options options) {
    const std::lock_guard lock(mutex_);
    apply(std::move(options));
  }

  bool is_on(Level level) noexcept {
    const int threshold = threshold_.load(std::memory_order_relaxed);
    return level != Level::kOff && static_cast<int>(level) >= threshold;
  }

  void write(Level level, std::string_view text) {
    const std::lock_guard lock(mutex_);
    const spdlog::details::log_msg message("", library_level(level), spdlog::string_view_t(text.data(), text.size()));
    if (!options_.sink) {
      stderr_.log(message);
      return;
    }
    spdlog::memory_buf_t line;
    line_formatter_->format(message, line);
    options_.sink(level, std::string_view(line.data(), line.size()));
  }

  std::optional<std::uint64_t> admit(std::string_view key) {
    const std::lock_guard lock(mutex_);
    return limiter_.admit(key, std::chrono::steady_clock::now());
  }

 private:
  Writer() { apply(Options()); }

  void apply(Options options) {
    options_ = std::move(options);
    const std::string pattern = pattern_for(options_);
    stderr_.set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
    line_formatter_ =
        std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::local, std::string());
    threshold_.store(static_cast<int>(options_.level), std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::atomic<int> threshold_{kUnset};
  Options options_;
  spdlog::sinks::stderr_sink_st stderr_;
  std::unique_ptr<spdlog::formatter> line_formatter_;
  RateLimiter limiter_;
};

}  // namespace

std::optional<Level> parse_level(std::string_view text) {
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
  if (word == "TRACE") return Level::kTrace;
  if (word == "DEBUG") return Level::kDebug;
  if (word == "INFO" || word == "0") return Level::kInfo;
  if (word == "WARNING" || word == "WARN" || word == "1") return Level::kWarning;
  if (word == "ERROR" || word == "2") return Level::kError;
  if (word == "FATAL" || word == "CRITICAL" || word == "OFF" || word == "3") return Level::kOff;
  return std::nullopt;
}

Level effective_level(std::optional<std::string_view> cpp_level, std::optional<std::string_view> debug_level) {
  const Level level = cpp_level ? parse_level(*cpp_level).value_or(Level::kWarning) : Level::kWarning;
  if (level != Level::kInfo || !debug_level) return level;
  std::string word(*debug_level);
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
  if (word == "DETAIL") return Level::kTrace;
  return word == "INFO" ? Level::kDebug : level;
}

Level level_from_environment() {
  const auto cpp_level = env_knob(env::kCppLogLevel);
  static std::atomic<bool> is_told{false};
  if (cpp_level && !parse_level(*cpp_level) && !is_told.exchange(true)) {
    std::fprintf(stderr,
                 "tensorplay: TP_CPP_LOG_LEVEL=%s: not a level; give INFO, WARNING, ERROR or FATAL, or 0 to 3\n",
                 cpp_level->c_str());
  }
  return effective_level(cpp_level, env_knob(env::kDistributedDebug));
}

void configure(Options options) {
  Writer::instance().configure(std::move(options));
}

bool is_on(Level level) noexcept {
  static Writer& writer = Writer::instance();
  return writer.is_on(level);
}

void write(Level level, std::string_view text) noexcept {
  if (!is_on(level)) return;
  try {
    Writer::instance().write(level, text);
  } catch (...) {
    // A line that cannot be written (stderr closed, no memory) is lost; nobody is left to be told.
  }
}

void write_limited(Level level, std::string_view key, std::string_view text) noexcept {
  if (!is_on(level)) return;
  try {
    const auto held_back = Writer::instance().admit(key);
    if (!held_back) return;
    if (*held_back == 0) return write(level, text);
    write(level, std::string(text) + " (" + std::to_string(*held_back) + " more like this were not shown)");
  } catch (...) {
    // As in write().
  }
}

std::optional<std::uint64_t> RateLimiter::admit(std::string_view key, TimePoint now) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (entries_.size() >= kManyKeys) forget_quiet_keys(now);
    entries_.emplace(std::string(key), Entry{now, 0});
    return 0;
  }
  Entry& entry = found->second;
  if (now - entry.passed_at < interval_) {
    ++entry.held_back;
    return std::nullopt;
  }
  entry.passed_at = now;
  return std::exchange(entry.held_back, 0);
}

void RateLimiter::forget_quiet_keys(TimePoint now) {
  std::erase_if(entries_, [&](const auto& entry) { return now - entry.second.passed_at >= interval_; });
  // All of them recent: a flood of distinct keys. Start over rather than grow.
  if (entries_.size() >= kManyKeys) entries_.clear();
}

}  // namespace tensorplay::base::log
