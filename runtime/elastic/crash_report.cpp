#include "runtime/elastic/crash_report.hpp"

#include "runtime/elastic/native_stack.hpp"

#include <array>
#include <csignal>

namespace tensorplay::distributed::elastic {
namespace {

/// Room for what follows the call stack.
constexpr std::size_t kTail = 128;

/// The same text inside a JSON string, as much of it as `limit` holds.
void append_escaped(FixedText& out, const char* text, std::size_t limit) noexcept {
  for (; *text != '\0' && out.size() + 8 < limit; ++text) {
    const char c = *text;
    if (c == '"' || c == '\\') {
      const std::array<char, 3> escaped = {'\\', c, '\0'};
      out << escaped.data();
    } else if (c == '\n') {
      out << "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      out << "?";
    } else {
      const std::array<char, 2> plain = {c, '\0'};
      out << plain.data();
    }
  }
}

}  // namespace

const char* signal_name(int signal) noexcept {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    case SIGABRT:
      return "SIGABRT";
    default:
      return "a signal";
  }
}

std::size_t crash_report(char* memory, std::size_t capacity, const char* message, const char* call_stack,
                         std::int64_t seconds, std::int64_t microseconds) noexcept {
  FixedText out(memory, capacity);
  const std::size_t limit = capacity > kTail ? capacity - kTail : 0;
  out << "{\"message\": {\"message\": \"";
  append_escaped(out, message, limit);
  out << "\", \"extraInfo\": {\"py_callstack\": \"";
  append_escaped(out, call_stack, limit);
  out << "\", \"timestamp\": \"" << static_cast<long>(seconds) << "\", \"thrown_at\": " << static_cast<long>(seconds)
      << ".";
  for (std::int64_t digit = 100'000; digit > 0; digit /= 10) out << static_cast<long>(microseconds / digit % 10);
  out << "}}}\n";
  return out.size();
}

}  // namespace tensorplay::distributed::elastic
