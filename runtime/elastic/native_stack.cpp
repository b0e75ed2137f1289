#include "runtime/elastic/native_stack.hpp"

#include <array>
#include <atomic>
#include <backtrace.h>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>

namespace tensorplay::distributed::elastic {
namespace {

constexpr int kMostFrames = 64;

std::atomic<backtrace_state*> g_state{nullptr};

struct Printing {
  FixedText& out;
  bool readable_names;
  int frames = 0;
};

const char* base_name(const char* path) noexcept {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

void print_name(Printing& printing, const char* name) {
  char* readable = nullptr;
  if (printing.readable_names) {
    int status = 0;
    readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  }
  printing.out << (readable != nullptr ? readable : name);
  std::free(readable);
}

void ignore_error(void*, const char*, int) {}

void print_symbol(void* data, std::uintptr_t pc, const char* symbol, std::uintptr_t, std::uintptr_t) {
  auto& printing = *static_cast<Printing*>(data);
  if (symbol != nullptr) {
    print_name(printing, symbol);
  } else {
    printing.out << "0x";
    printing.out.hex(pc);
  }
}

int print_frame(void* data, std::uintptr_t pc, const char* file, int line, const char* function) {
  auto& printing = *static_cast<Printing*>(data);
  if (pc == ~std::uintptr_t{0}) return 0;
  if (++printing.frames > kMostFrames) return 1;
  printing.out << "  ";
  if (function != nullptr) {
    print_name(printing, function);
  } else {
    backtrace_syminfo(g_state.load(), pc, &print_symbol, &ignore_error, data);
  }
  if (file != nullptr) printing.out << " (" << base_name(file) << ":" << static_cast<long>(line) << ")";
  printing.out << "\n";
  return 0;
}

}  // namespace

FixedText& FixedText::operator<<(const char* text) noexcept {
  while (*text != '\0' && size_ + 1 < capacity_) memory_[size_++] = *text++;
  memory_[size_] = '\0';
  return *this;
}

FixedText& FixedText::operator<<(long number) noexcept {
  std::array<char, 24> digits{};
  std::size_t at = digits.size() - 1;
  unsigned long rest = number < 0 ? 0UL - static_cast<unsigned long>(number) : static_cast<unsigned long>(number);
  do {
    digits[--at] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (number < 0) digits[--at] = '-';
  return *this << &digits[at];
}

FixedText& FixedText::hex(std::size_t number) noexcept {
  std::array<char, 20> digits{};
  std::size_t at = digits.size() - 1;
  do {
    digits[--at] = "0123456789abcdef"[number % 16];
    number /= 16;
  } while (number > 0);
  return *this << &digits[at];
}

void prepare_native_stack() {
  if (g_state.load() == nullptr) g_state = backtrace_create_state(nullptr, 1, &ignore_error, nullptr);
}

void native_stack(FixedText& out, int skip, bool readable_names) {
  if (g_state.load() == nullptr) return;
  Printing printing{out, readable_names};
  backtrace_full(g_state.load(), skip + 1, &print_frame, &ignore_error, &printing);
}

}  // namespace tensorplay::distributed::elastic
