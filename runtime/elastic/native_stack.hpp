/// The call stack of this thread as text, with functions, files and lines where the binaries have them.
///
/// Safe in a signal handler: libbacktrace maps its memory itself and never calls malloc. What malloc is needed for,
/// readable C++ names, is a step of its own.
#pragma once

#include <cstddef>

namespace tensorplay::distributed::elastic {

/// A text in caller's memory that is cut off where the memory ends. Always terminated by a zero.
class FixedText {
 public:
  FixedText(char* memory, std::size_t capacity) noexcept : memory_(memory), capacity_(capacity) { memory_[0] = '\0'; }

  FixedText& operator<<(const char* text) noexcept;
  FixedText& operator<<(long number) noexcept;
  FixedText& hex(std::size_t number) noexcept;

  const char* text() const noexcept { return memory_; }
  std::size_t size() const noexcept { return size_; }

 private:
  char* memory_;
  std::size_t capacity_;
  std::size_t size_ = 0;
};

/// Opens what native_stack needs, while the process is well. Idempotent.
void prepare_native_stack();

/// Appends one line for each frame, innermost first, without the `skip` innermost: "gather_rows (embedding.cpp:88)".
/// `readable_names` demangles them, which allocates: leave it false where the heap may be broken.
void native_stack(FixedText& out, int skip, bool readable_names);

}  // namespace tensorplay::distributed::elastic
