/// SLURM's host lists: "n[1-3,7],m[01-10]-ib,login". A core without I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorplay::agent {

/// All names that a host list stands for, in SLURM's order: several brackets in one name make every combination, the
/// last bracket running fastest; leading zeros of a range's first number are kept. nullopt for what is not a host list,
/// or one of more than 65,536 names (SLURM's own limit).
std::optional<std::vector<std::string>> expand_hostlist(std::string_view text);

}  // namespace tensorplay::agent
