/// The arithmetic of a grid of ranks.
///
/// Thread rules: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tensorplay::distributed {

/// Ranks in row-major order.
struct Grid {
  std::vector<int> ranks;
  std::vector<int> shape;

  int ndim() const noexcept { return static_cast<int>(shape.size()); }
  std::vector<int> strides() const;

  /// Where a rank is; nullopt when it is nowhere.
  std::optional<std::vector<int>> coordinate_of(int rank) const;

  /// The ranks that one gets by walking `dims` in row-major order from the place `start`.
  std::vector<int> along(const std::vector<std::size_t>& dims, const std::vector<int>& start) const;

  /// All different along(dims, ...): a partition of the grid.
  std::vector<std::vector<int>> rows(const std::vector<std::size_t>& dims) const;
};

/// InvalidArgument when ranks occur twice, are negative, or do not fill the shape.
void check_grid(const Grid& grid);

/// Whether all ranks of each row have the same identity. `identity[rank]` is a rank's.
bool is_within(const std::vector<std::vector<int>>& rows, const std::vector<std::int64_t>& identity);

/// "(2, 4)"; "('dp', 'tp')" becomes "(dp, tp)".
std::string tuple_text(const std::vector<int>& values);
std::string tuple_text(const std::vector<std::string>& values);

}  // namespace tensorplay::distributed
