#include "runtime/parallel/bucket_assignment.hpp"

#include <catch2/catch.hpp>

using tensorplay::DType;
using tensorplay::nn::parallel::assign_buckets;
using Buckets = std::vector<std::vector<std::size_t>>;

TEST_CASE("a bucket closes when it holds its cap; the first has its own") {
  REQUIRE(assign_buckets({{5, 6}, {4, 6}, {3, 30}, {2, 10}, {1, 100}, {0, 1}}, {10, 40}) ==
          Buckets{{5, 4}, {3, 2}, {1}, {0}});
}

TEST_CASE("dtypes do not mix, and buckets come in the order in which they are full") {
  const auto half = DType::kFloat16;
  REQUIRE(assign_buckets({{0, 4}, {1, 4, half}, {2, 4}, {3, 4, half}, {4, 4, half}}, {8, 8}) ==
          Buckets{{0, 2}, {1, 3}, {4}});
  REQUIRE(assign_buckets({{0, 4}, {1, 4, half}, {2, 4, half}}, {8}) == Buckets{{0}, {1, 2}});
}

TEST_CASE("nothing needs no bucket") {
  REQUIRE(assign_buckets({}, {1}).empty());
}
