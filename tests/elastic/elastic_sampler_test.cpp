#include "tensorplay/distributed/elastic_sampler.hpp"

#include "tensorplay/distributed/elastic.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <set>

using tensorplay::distributed::InvalidArgument;
using tensorplay::distributed::elastic::ElasticDistributedSampler;
using Indices = std::vector<std::int64_t>;

namespace {

/// What all ranks of a world take, from `start` on.
Indices all_ranks(int world, std::int64_t size, std::int64_t start, std::int64_t epoch, bool drop_last = false) {
  Indices all;
  for (int rank = 0; rank < world; ++rank) {
    ElasticDistributedSampler sampler(size, {.num_replicas = world, .rank = rank, .drop_last = drop_last});
    sampler.set_epoch(epoch, start);
    const auto mine = sampler.indices();
    REQUIRE(static_cast<std::int64_t>(mine.size()) == sampler.size());
    all.insert(all.end(), mine.begin(), mine.end());
  }
  return all;
}

}  // namespace

TEST_CASE("a world that changes its size in the middle of an epoch takes every sample once") {
  // Four ranks take ten samples each of a hundred; then two are left.
  std::multiset<std::int64_t> seen;
  for (int rank = 0; rank < 4; ++rank) {
    ElasticDistributedSampler sampler(100, {.num_replicas = 4, .rank = rank});
    const auto mine = sampler.indices();
    seen.insert(mine.begin(), mine.begin() + 10);
  }
  for (const auto index : all_ranks(2, 100, 40, 0)) seen.insert(index);
  REQUIRE(seen.size() == 100);
  for (std::int64_t i = 0; i < 100; ++i) REQUIRE(seen.count(i) == 1);
}

TEST_CASE("every rank has as many samples, by repeating or by dropping the last") {
  const auto padded = all_ranks(3, 10, 0, 1);
  REQUIRE(padded.size() == 12);
  REQUIRE(std::set<std::int64_t>(padded.begin(), padded.end()).size() == 10);
  const auto dropped = all_ranks(3, 10, 0, 1, true);
  REQUIRE(dropped.size() == 9);
  REQUIRE(std::set<std::int64_t>(dropped.begin(), dropped.end()).size() == 9);
  REQUIRE(all_ranks(3, 2, 1, 0).size() == 3);  // One sample for three ranks.
  REQUIRE(all_ranks(3, 10, 10, 0).empty());
}

TEST_CASE("the order follows from seed and epoch, on every machine") {
  REQUIRE(ElasticDistributedSampler(6, {}).indices() == ElasticDistributedSampler(6, {}).indices());
  REQUIRE(all_ranks(1, 50, 0, 0) != all_ranks(1, 50, 0, 1));
  REQUIRE(ElasticDistributedSampler(50, {.seed = 1}).indices() != ElasticDistributedSampler(50, {.seed = 2}).indices());
  REQUIRE(ElasticDistributedSampler(4, {.shuffle = false}).indices() == Indices{0, 1, 2, 3});
}

TEST_CASE("a sampler goes on and says where it is") {
  ElasticDistributedSampler sampler(10, {.num_replicas = 2, .shuffle = false});
  sampler.advance(4);
  REQUIRE(sampler.start_index() == 4);
  REQUIRE(sampler.indices() == Indices{4, 6, 8});
  sampler.advance(100);
  REQUIRE(sampler.indices().empty());
  sampler.set_epoch(3);
  REQUIRE(sampler.epoch() == 3);
  REQUIRE(sampler.size() == 5);
  REQUIRE_THROWS_AS(sampler.set_epoch(3, 11), InvalidArgument);
  REQUIRE_THROWS_AS(ElasticDistributedSampler(10, {.num_replicas = 2, .rank = 2}), InvalidArgument);
}

TEST_CASE("the round is what the agent's mark says") {
  ::setenv("TPRUN_WORKER", "4711.3.0", 1);
  REQUIRE(tensorplay::distributed::elastic::round() == 3);
  ::unsetenv("TPRUN_WORKER");
  REQUIRE(tensorplay::distributed::elastic::round() == 0);
}
