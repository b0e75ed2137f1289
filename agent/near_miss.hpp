/// "Did you mean": the candidate that a mistyped word is most likely to stand for. A core without I/O.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tensorplay::agent {

/// The closest of `candidates` to `word`, counting inserted, dropped, changed and swapped letters; nullopt when none is
/// close enough to be worth naming. '-' and '_' count as the same letter.
std::optional<std::string_view> near_miss(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace tensorplay::agent
