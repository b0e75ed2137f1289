#include "runtime/parallel/low_rank.hpp"
#include "runtime/parallel/serial_worker.hpp"
#include "tensorplay/distributed/algorithms/ddp_comm_hooks.hpp"
#include "tensorplay/distributed/collectives.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace tensorplay::distributed::algorithms::ddp_comm_hooks {
namespace {

namespace parallel = nn::parallel;

/// A gradient seen as a matrix, and where its factors lie.
struct Factored {
  float* matrix;
  std::size_t n;
  std::size_t m;
  std::size_t rank;
  std::size_t p_offset;
  std::size_t q_offset;
};

}  // namespace

struct PowerSGDState::Core {
  struct BucketMemory {
    std::vector<float> error;
    std::vector<float> q;
  };

  explicit Core(PowerSGDOptions the_options) : options(std::move(the_options)) {
    if (!options.process_group) options.process_group = get_default_group();
  }

  /// Averages the bucket in place. Runs in the worker, one bucket after the other.
  void reduce(const Tensor& buffer, const std::vector<Shape>& shapes, std::size_t index, std::int64_t iteration);
  std::vector<Factored> factor(float* data, const std::vector<Shape>& shapes, std::vector<float>& rest,
                               std::vector<std::pair<float*, std::size_t>>& whole) const;
  void average(std::vector<float>& values, ReduceOp op) const {
    if (!values.empty()) all_reduce(Tensor::from_span(std::span(values)), {.op = op, .group = options.process_group});
  }

  PowerSGDOptions options;
  std::int64_t iteration = 0;  // Of the caller's thread.
  std::map<std::size_t, BucketMemory> memory;
  std::atomic<std::int64_t> elements_before{0};
  std::atomic<std::int64_t> elements_after{0};
  parallel::SerialWorker worker;  // Last: ends before what its jobs use.
};

std::vector<Factored> PowerSGDState::Core::factor(float* data, const std::vector<Shape>& shapes,
                                                  std::vector<float>& rest,
                                                  std::vector<std::pair<float*, std::size_t>>& whole) const {
  std::vector<Factored> factored;
  std::size_t p_size = 0;
  std::size_t q_size = 0;
  for (const Shape& shape : shapes) {
    std::size_t count = 1;
    for (const auto size : shape) count *= static_cast<std::size_t>(size);
    const std::size_t n = shape.empty() || count == 0 ? 1 : static_cast<std::size_t>(shape.front());
    const std::size_t m = count / n;
    const auto rank = std::min({n, m, static_cast<std::size_t>(options.matrix_approximation_rank)});
    if (static_cast<double>((n + m) * rank) * options.min_compression_rate < static_cast<double>(count)) {
      factored.push_back({data, n, m, rank, p_size, q_size});
      p_size += n * rank;
      q_size += m * rank;
    } else {
      whole.emplace_back(data, count);
      rest.insert(rest.end(), data, data + count);
    }
    data += count;
  }
  return factored;
}

void PowerSGDState::Core::reduce(const Tensor& buffer, const std::vector<Shape>& shapes, std::size_t index,
                                 std::int64_t the_iteration) {
  if (the_iteration < options.start_powerSGD_iter) {
    all_reduce(buffer, {.op = ReduceOp::AVG, .group = options.process_group});
    return;
  }
  Tensor working = buffer.to(DType::kFloat32);
  const auto values = working.span<float>();
  BucketMemory& mine = memory[index];
  if (mine.error.size() != values.size()) mine = {std::vector<float>(values.size(), 0.0F), {}};
  if (options.use_error_feedback) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += mine.error[i];
    std::copy(values.begin(), values.end(), mine.error.begin());
  }

  std::vector<float> rest;
  std::vector<std::pair<float*, std::size_t>> whole;
  const auto matrices = factor(values.data(), shapes, rest, whole);
  average(rest, ReduceOp::AVG);
  const float* average_of_rest = rest.data();
  for (const auto& [place, count] : whole) {
    std::copy_n(average_of_rest, count, place);
    average_of_rest += count;
    const auto offset = place - values.data();
    std::fill_n(mine.error.begin() + offset, count, 0.0F);  // Nothing is lost here.
  }
  if (matrices.empty()) {
    if (working.data() != buffer.data()) Tensor(buffer).copy_(working);
    return;
  }

  const Factored& last = matrices.back();
  std::vector<float> p(last.p_offset + last.n * last.rank);
  const std::size_t q_size = last.q_offset + last.m * last.rank;
  if (!options.warm_start || mine.q.size() != q_size) {
    const auto seed = options.random_seed + (options.warm_start ? 0 : static_cast<std::uint64_t>(the_iteration));
    const Tensor random = randn({static_cast<std::int64_t>(q_size)}, seed * 1'000'003 + index);
    mine.q.assign(random.span<float>().begin(), random.span<float>().end());
  }
  for (const auto& one : matrices) {
    float* q = mine.q.data() + one.q_offset;
    parallel::orthogonalize(q, one.m, one.rank, options.orthogonalization_epsilon);
    parallel::multiply(one.matrix, q, p.data() + one.p_offset, one.n, one.m, one.rank);
  }
  average(p, ReduceOp::SUM);
  for (const auto& one : matrices) {
    float* factor_p = p.data() + one.p_offset;
    parallel::orthogonalize(factor_p, one.n, one.rank, options.orthogonalization_epsilon);
    parallel::multiply_transposed(one.matrix, factor_p, mine.q.data() + one.q_offset, one.n, one.m, one.rank);
  }
  average(mine.q, ReduceOp::AVG);
  for (const auto& one : matrices) {
    parallel::expand(p.data() + one.p_offset, mine.q.data() + one.q_offset, one.matrix, one.n, one.m, one.rank);
    if (!options.use_error_feedback) continue;
    const auto offset = static_cast<std::size_t>(one.matrix - values.data());
    for (std::size_t i = 0; i < one.n * one.m; ++i) mine.error[offset + i] -= one.matrix[i];
  }
  elements_before += static_cast<std::int64_t>(values.size());
  elements_after += static_cast<std::int64_t>(rest.size() + p.size() + mine.q.size());
  if (working.data() != buffer.data()) Tensor(buffer).copy_(working);
}

PowerSGDState::PowerSGDState(PowerSGDOptions options) {
  if ((options.use_error_feedback || options.warm_start) && options.start_powerSGD_iter <= 1) {
    throw InvalidArgument(
        "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can "
        "only be applied after the first two iterations in DDP.");
  }
  if (options.matrix_approximation_rank < 1) throw InvalidArgument("matrix_approximation_rank has to be positive");
  core_ = std::make_shared<Core>(std::move(options));
}

PowerSGDState::~PowerSGDState() = default;

std::int64_t PowerSGDState::elements_before() const {
  return core_->elements_before;
}
std::int64_t PowerSGDState::elements_after() const {
  return core_->elements_after;
}

namespace {

/// `is_one_matrix`: the bucket as a square, filled up with zeros.
CommHook power_sgd(const PowerSGDState& state, bool is_one_matrix) {
  return [core = state.core(), is_one_matrix](GradBucket& bucket) {
    std::vector<Shape> shapes;
    const Tensor buffer = bucket.buffer();
    const auto side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(buffer.numel()))));
    if (is_one_matrix) {
      shapes.push_back({side, side});
    } else {
      for (const Tensor& gradient : bucket.gradients()) shapes.push_back(gradient.shape());
    }
    const auto iteration = core->iteration;
    if (bucket.is_last()) ++core->iteration;
    auto done = std::make_shared<Future>();
    auto* const raw = core.get();  // The worker is a part of it: jobs never outlive it, and must not keep it alive.
    core->worker.post(
        [raw, done, buffer, shapes = std::move(shapes), index = bucket.index(), iteration, side, is_one_matrix] {
          try {
            if (is_one_matrix) {
              Tensor square = zeros({side * side}, buffer.dtype());
              const Tensor part = square.slice(0, 0, buffer.numel());
              Tensor(part).copy_(buffer);
              raw->reduce(square, shapes, index, iteration);
              Tensor(buffer).copy_(part);
            } else {
              raw->reduce(buffer, shapes, index, iteration);
            }
            done->set_value({buffer});
          } catch (...) {
            done->set_error(std::current_exception());
          }
        });
    return done;
  };
}

}  // namespace

CommHook powerSGD_hook(const PowerSGDState& state) {
  return power_sgd(state, false);
}

CommHook batched_powerSGD_hook(const PowerSGDState& state) {
  return power_sgd(state, true);
}

}  // namespace tensorplay::distributed::algorithms::ddp_comm_hooks
