#include "runtime/elastic/throw_log.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <memory>
#include <string_view>
#include <typeinfo>

namespace tensorplay::distributed::elastic {
namespace {

/// A note has fixed size: noting a std::bad_alloc must not allocate.
struct Note {
  const std::type_info* type = nullptr;
  const void* object = nullptr;  // Identifies the exception; never followed.
  int depth = 0;                 // Exceptions already unwinding when it was thrown.
  WallClock::time_point when;
  std::array<char, 512> text{};
};

constexpr std::size_t kMostNotes = 8;

struct Notes {
  std::array<Note, kMostNotes> notes;
  std::size_t count = 0;
};

thread_local Notes t_notes;

std::string demangle(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                             &std::free);
  return status == 0 && readable ? readable.get() : name;
}

/// The exception as std::exception, null when it is none. This is how a catch clause finds out.
const std::exception* as_std_exception(void* object, const std::type_info* type) noexcept {
  if (type == nullptr || !typeid(std::exception).__do_catch(type, &object, 1)) return nullptr;
  return static_cast<const std::exception*>(object);
}

void note(void* object, const std::type_info* type, int depth) noexcept {
  Notes& log = t_notes;
  // Whatever was thrown at this depth or above it has been caught since.
  while (log.count > 0 && log.notes[log.count - 1].depth >= depth) --log.count;
  if (log.count == kMostNotes) return;
  Note& entry = log.notes[log.count++];
  entry.type = type;
  entry.object = object;
  entry.depth = depth;
  entry.when = WallClock::now();
  entry.text[0] = '\0';
  if (const auto* exception = as_std_exception(object, type)) {
    const std::string_view text = exception->what();
    const auto length = std::min(text.size(), entry.text.size() - 1);
    std::memcpy(entry.text.data(), text.data(), length);
    entry.text[length] = '\0';
  }
}

Thrown to_thrown(const Note& entry) {
  return {entry.type == nullptr ? "" : demangle(entry.type->name()), entry.text.data(), entry.when};
}

void* object_of(const std::exception_ptr& error) noexcept {
  void* object = nullptr;  // libstdc++'s exception_ptr is the address of the exception object.
  static_assert(sizeof(error) == sizeof(object));
  std::memcpy(&object, &error, sizeof(object));
  return object;
}

}  // namespace

std::optional<Thrown> unwinding_exception() {
  const Notes& log = t_notes;
  if (std::uncaught_exceptions() == 0 || log.count == 0) return std::nullopt;
  return to_thrown(log.notes[0]);
}

Thrown describe(const std::exception_ptr& error) {
  Thrown thrown;
  thrown.when = WallClock::now();
  const auto* type = error.__cxa_exception_type();
  thrown.type = demangle(type->name());
  if (const auto* exception = as_std_exception(object_of(error), type)) thrown.text = exception->what();
  const Notes& log = t_notes;
  for (std::size_t i = 0; i < log.count; ++i) {
    if (log.notes[i].object == object_of(error)) thrown.when = log.notes[i].when;
  }
  return thrown;
}

void note_rethrow(const std::exception_ptr& error) noexcept {
  note(object_of(error), error.__cxa_exception_type(), std::uncaught_exceptions());
}

}  // namespace tensorplay::distributed::elastic

/// In front of the C++ runtime's function of this name: the library comes before libstdc++ in the order in which the
/// dynamic linker looks. Notes the throw and passes it on.
extern "C" __attribute__((visibility("default"), noreturn)) void __cxa_throw(void* object, void* type_info,
                                                                             void (*destroy)(void*)) {
  using Throw = void (*)(void*, void*, void (*)(void*));
  static const auto next = reinterpret_cast<Throw>(::dlsym(RTLD_NEXT, "__cxa_throw"));
  tensorplay::distributed::elastic::note(object, static_cast<const std::type_info*>(type_info),
                                         std::uncaught_exceptions());
  next(object, type_info, destroy);
  std::abort();  // Not reached.
}
