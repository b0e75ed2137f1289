#include "runtime/group/roll_call.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace tensorplay::distributed {
namespace {

constexpr std::size_t kMostNamed = 16;

}  // namespace

RollCall::RollCall(std::shared_ptr<Store> store, int rank, int size)
    : store_(std::move(store)), rank_(rank), size_(size) {}

void RollCall::arrive(const std::string& stage, const std::string& what, Deadline deadline) {
  const auto started = Deadline::Clock::now();
  store_->set(stage + "/" + std::to_string(rank_), "here");
  try {
    store_->barrier(stage, size_, store_timeout(deadline));
  } catch (const StoreTimeoutError&) {
    const auto absent = missing(stage);
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - started);
    throw DistStoreError(what + ": waited " + describe(waited) + " for " + std::to_string(size_) + " ranks: " +
                         (absent.empty() ? "the last one came too late" : name_ranks(absent) + " never came"));
  }
}

std::vector<int> RollCall::missing(const std::string& stage) {
  std::vector<int> absent;
  for (int rank = 0; rank < size_; ++rank) {
    if (!store_->check({stage + "/" + std::to_string(rank)})) absent.push_back(rank);
  }
  return absent;
}

std::string name_ranks(const std::vector<int>& ranks) {
  std::string text;
  const std::size_t named = std::min(ranks.size(), kMostNamed);
  for (std::size_t i = 0; i < named; ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text.append("rank ").append(std::to_string(ranks[i]));
  }
  if (named < ranks.size()) text.append(" and ").append(std::to_string(ranks.size() - named)).append(" others");
  return text;
}

Store::Timeout store_timeout(Deadline deadline) {
  constexpr Store::Timeout kMonth = std::chrono::hours(24 * 30);
  if (deadline.is_never()) return kMonth;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
  return std::clamp(left, Store::Timeout(1), kMonth);
}

std::string describe(std::chrono::milliseconds duration) {
  std::array<char, 32> text{};
  const double seconds = static_cast<double>(duration.count()) / 1000;
  if (seconds >= 120) {
    std::snprintf(text.data(), text.size(), "%.0f min", seconds / 60);
  } else {
    std::snprintf(text.data(), text.size(), seconds < 10 ? "%.1f s" : "%.0f s", seconds);
  }
  return text.data();
}

}  // namespace tensorplay::distributed
