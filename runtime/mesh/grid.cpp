#include "runtime/mesh/grid.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <set>

namespace tensorplay::distributed {

std::vector<int> Grid::strides() const {
  std::vector<int> result(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) result[i - 1] = result[i] * shape[i];
  return result;
}

std::optional<std::vector<int>> Grid::coordinate_of(int rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  if (found == ranks.end()) return std::nullopt;
  auto place = static_cast<int>(found - ranks.begin());
  std::vector<int> coordinate;
  for (const int stride : strides()) {
    coordinate.push_back(place / stride);
    place %= stride;
  }
  return coordinate;
}

std::vector<int> Grid::along(const std::vector<std::size_t>& dims, const std::vector<int>& start) const {
  const auto step = strides();
  int base = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) base += start[d] * step[d];
  }
  std::vector<int> places = {base};
  for (const auto d : dims) {
    std::vector<int> next;
    for (const int place : places) {
      for (int i = 0; i < shape[d]; ++i) next.push_back(place + i * step[d]);
    }
    places = std::move(next);
  }
  std::vector<int> result;
  for (const int place : places) result.push_back(ranks[static_cast<std::size_t>(place)]);
  return result;
}

std::vector<std::vector<int>> Grid::rows(const std::vector<std::size_t>& dims) const {
  std::vector<std::vector<int>> result;
  for (const int rank : ranks) {
    const auto coordinate = *coordinate_of(rank);
    const bool is_first = std::all_of(dims.begin(), dims.end(), [&](auto d) { return coordinate[d] == 0; });
    if (is_first) result.push_back(along(dims, coordinate));
  }
  return result;
}

void check_grid(const Grid& grid) {
  std::size_t count = 1;
  for (const int size : grid.shape) {
    if (size <= 0) throw InvalidArgument("DeviceMesh: shape " + tuple_text(grid.shape) + " has no ranks");
    count *= static_cast<std::size_t>(size);
  }
  if (grid.shape.empty()) throw InvalidArgument("DeviceMesh: the mesh has no dimension");
  if (count != grid.ranks.size()) {
    throw InvalidArgument("DeviceMesh: " + std::to_string(grid.ranks.size()) + " ranks do not fill shape " +
                          tuple_text(grid.shape));
  }
  std::set<int> seen;
  for (const int rank : grid.ranks) {
    if (rank < 0) throw InvalidArgument("DeviceMesh: rank " + std::to_string(rank) + " is negative");
    if (!seen.insert(rank).second) {
      throw InvalidArgument("DeviceMesh: rank " + std::to_string(rank) + " occurs twice");
    }
  }
}

bool is_within(const std::vector<std::vector<int>>& rows, const std::vector<std::int64_t>& identity) {
  return std::all_of(rows.begin(), rows.end(), [&](const std::vector<int>& row) {
    return std::all_of(row.begin(), row.end(), [&](int rank) {
      return identity[static_cast<std::size_t>(rank)] == identity[static_cast<std::size_t>(row.front())];
    });
  });
}

namespace {

template <typename Value, typename Text>
std::string tuple(const std::vector<Value>& values, Text text) {
  std::string result = "(";
  for (const auto& value : values) result.append(result.size() == 1 ? "" : ", ").append(text(value));
  return result.append(values.size() == 1 ? ",)" : ")");
}

}  // namespace

std::string tuple_text(const std::vector<int>& values) {
  return tuple(values, [](int value) { return std::to_string(value); });
}

std::string tuple_text(const std::vector<std::string>& values) {
  return tuple(values, [](const std::string& value) { return value; });
}

}  // namespace tensorplay::distributed
