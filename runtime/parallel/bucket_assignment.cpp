#include "runtime/parallel/bucket_assignment.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace tensorplay::nn::parallel {

std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<BucketCandidate>& candidates,
                                                     const std::vector<std::size_t>& caps) {
  struct Open {
    std::vector<std::size_t> parameters;
    std::size_t bytes = 0;
    std::size_t closed_before = 0;
    std::size_t last_place = 0;
  };
  using Key = std::tuple<DType, DeviceType, int>;
  std::map<Key, Open> open;
  std::vector<std::pair<std::size_t, std::vector<std::size_t>>> done;  // By the place of their last member.
  for (std::size_t place = 0; place < candidates.size(); ++place) {
    const BucketCandidate& candidate = candidates[place];
    Open& bucket = open[{candidate.dtype, candidate.device.type, candidate.device.index}];
    bucket.parameters.push_back(candidate.parameter);
    bucket.bytes += candidate.bytes;
    bucket.last_place = place;
    if (bucket.bytes < caps[std::min(bucket.closed_before, caps.size() - 1)]) continue;
    done.emplace_back(place, std::exchange(bucket.parameters, {}));
    bucket.bytes = 0;
    ++bucket.closed_before;
  }
  for (auto& [key, bucket] : open) {
    if (!bucket.parameters.empty()) done.emplace_back(bucket.last_place, std::move(bucket.parameters));
  }
  std::sort(done.begin(), done.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::vector<std::size_t>> buckets;
  buckets.reserve(done.size());
  for (auto& [place, parameters] : done) buckets.push_back(std::move(parameters));
  return buckets;
}

}  // namespace tensorplay::nn::parallel
