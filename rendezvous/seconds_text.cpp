#include "rendezvous/seconds_text.hpp"

namespace tensorplay::rendezvous {

std::string seconds_text(std::chrono::nanoseconds time) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100;
  auto text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text.append(".").append(std::to_string(tenths % 10));
  return text + " s";
}

}  // namespace tensorplay::rendezvous
