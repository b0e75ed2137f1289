#include "runtime/mesh/grid.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <catch2/catch.hpp>

using tensorplay::distributed::Grid;
using tensorplay::distributed::InvalidArgument;
using tensorplay::distributed::is_within;
using Ranks = std::vector<int>;
using Rows = std::vector<Ranks>;

TEST_CASE("rows along some dimensions are a partition of the grid") {
  const Grid grid{{0, 1, 2, 3, 4, 5, 6, 7}, {2, 2, 2}};
  REQUIRE(grid.rows({2}) == Rows{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  REQUIRE(grid.rows({0}) == Rows{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  REQUIRE(grid.rows({0, 2}) == Rows{{0, 1, 4, 5}, {2, 3, 6, 7}});
  REQUIRE(grid.along({1, 2}, {1, 0, 0}) == Ranks{4, 5, 6, 7});
  REQUIRE(grid.coordinate_of(6) == Ranks{1, 1, 0});
  REQUIRE_FALSE(grid.coordinate_of(8).has_value());
}

TEST_CASE("a grid with holes, doubles or negative ranks is refused") {
  using tensorplay::distributed::check_grid;
  REQUIRE_THROWS_AS(check_grid({{0, 1, 2}, {2, 2}}), InvalidArgument);
  REQUIRE_THROWS_AS(check_grid({{0, 1, 1, 3}, {2, 2}}), InvalidArgument);
  REQUIRE_THROWS_AS(check_grid({{0, -1}, {2}}), InvalidArgument);
  REQUIRE_THROWS_AS(check_grid({{}, {0}}), InvalidArgument);
  REQUIRE_NOTHROW(check_grid({{3, 1}, {2, 1}}));
}

TEST_CASE("inner groups share a host only when every one of them does") {
  const Grid grid{{0, 1, 2, 3}, {2, 2}};
  REQUIRE(is_within(grid.rows({1}), {7, 7, 9, 9}));
  REQUIRE_FALSE(is_within(grid.rows({0}), {7, 7, 9, 9}));
  REQUIRE_FALSE(is_within(grid.rows({1}), {7, 9, 7, 9}));
}
