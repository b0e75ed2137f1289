#pragma once

#include "tensorplay/distributed/export.hpp"

#include <cstdint>
#include <vector>

namespace tensorplay::distributed::elastic {

/// Which samples of a data set are this rank's, when the world may change its size in the middle of an epoch.
///
/// An epoch is one order of all samples, which follows from seed and epoch alone, the same on every machine and in
/// every world. Ranks take turns in it from `start_index` on. After a restart a sampler made for the new world, started
/// where the old one had come to (advance, or a checkpoint of start_index), goes on without leaving a sample out or
/// taking one twice:
///
///     elastic::ElasticDistributedSampler sampler(size, {.num_replicas = get_world_size(), .rank = get_rank()});
///     sampler.set_epoch(epoch, start_index_of_checkpoint);
///     for (const auto sample : sampler.indices()) ...
///
/// Thread rules: a value. Errors: InvalidArgument for a place that is none.
/// Source: the elastic sampler of torch's examples, which shuffles anew what is left.
class TP_API ElasticDistributedSampler {
 public:
  struct Options {
    int num_replicas = 1;
    int rank = 0;
    std::int64_t start_index = 0;  ///< Samples of the epoch that the world has done.
    bool shuffle = true;
    std::uint64_t seed = 0;
    bool drop_last = false;  ///< False: the first samples are repeated until every rank has as many.
  };

  ElasticDistributedSampler(std::int64_t dataset_size, const Options& options);

  /// A new order of the samples.
  void set_epoch(std::int64_t epoch, std::int64_t start_index = 0);

  /// The world has done `samples` more.
  void advance(std::int64_t samples);

  /// This rank's samples from start_index on, in the order in which to take them.
  std::vector<std::int64_t> indices() const;

  std::int64_t size() const;  ///< How many indices() are; the same on every rank.
  std::int64_t start_index() const noexcept { return start_index_; }
  std::int64_t epoch() const noexcept { return epoch_; }

 private:
  void check_start() const;

  std::int64_t dataset_size_;
  Options options_;
  std::int64_t epoch_ = 0;
  std::int64_t start_index_ = 0;
};

}  // namespace tensorplay::distributed::elastic
