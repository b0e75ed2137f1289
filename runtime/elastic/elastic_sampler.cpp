#include "tensorplay/distributed/elastic_sampler.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace tensorplay::distributed::elastic {
namespace {

/// splitmix64: the standard library's generators and shuffles differ between implementations.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

ElasticDistributedSampler::ElasticDistributedSampler(std::int64_t dataset_size, const Options& options)
    : dataset_size_(dataset_size), options_(options), start_index_(options.start_index) {
  if (dataset_size < 0) throw InvalidArgument("ElasticDistributedSampler: a data set of a negative size");
  if (options.num_replicas < 1 || options.rank < 0 || options.rank >= options.num_replicas) {
    throw InvalidArgument("ElasticDistributedSampler: rank " + std::to_string(options.rank) + " of " +
                          std::to_string(options.num_replicas));
  }
  check_start();
}

void ElasticDistributedSampler::check_start() const {
  if (start_index_ >= 0 && start_index_ <= dataset_size_) return;
  throw InvalidArgument("ElasticDistributedSampler: start index " + std::to_string(start_index_) +
                        " of a data set with " + std::to_string(dataset_size_) + " samples");
}

void ElasticDistributedSampler::set_epoch(std::int64_t epoch, std::int64_t start_index) {
  epoch_ = epoch;
  start_index_ = start_index;
  check_start();
}

void ElasticDistributedSampler::advance(std::int64_t samples) {
  start_index_ = std::min(dataset_size_, start_index_ + samples);  // The last samples may have been repeats.
  check_start();
}

std::int64_t ElasticDistributedSampler::size() const {
  const std::int64_t left = dataset_size_ - start_index_;
  const std::int64_t ranks = options_.num_replicas;
  return options_.drop_last ? left / ranks : (left + ranks - 1) / ranks;
}

std::vector<std::int64_t> ElasticDistributedSampler::indices() const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(dataset_size_));
  std::iota(order.begin(), order.end(), 0);
  if (options_.shuffle) {
    std::uint64_t state = mix(mix(options_.seed) ^ static_cast<std::uint64_t>(epoch_));
    for (std::size_t i = order.size(); i > 1; --i) {
      state = mix(state);
      std::swap(order[i - 1], order[state % i]);  // The bias of the remainder is below 2^-32 for any real data set.
    }
  }
  const std::int64_t left = dataset_size_ - start_index_;
  std::vector<std::int64_t> mine;
  for (std::int64_t i = 0; i < size(); ++i) {
    const std::int64_t place = options_.rank + i * options_.num_replicas;
    mine.push_back(order[static_cast<std::size_t>(start_index_ + place % left)]);
  }
  return mine;
}

}  // namespace tensorplay::distributed::elastic
