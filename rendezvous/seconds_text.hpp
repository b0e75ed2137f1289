#pragma once

#include <chrono>
#include <string>

namespace tensorplay::rendezvous {

/// A time that somebody has set, for people: "15 s", and with a tenth where there is one, "1.5 s".
std::string seconds_text(std::chrono::nanoseconds time);

}  // namespace tensorplay::rendezvous
