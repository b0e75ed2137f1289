/// Every operation x reduce op x dtype x layout against a plain reference, inside a group that is made already: for
/// whatever backend, with ranks as threads or as processes.
#pragma once

#include "tests/support/rank_checks.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace tensorplay::testing {

using distributed::ReduceOp;

inline constexpr DType kEveryDType[] = {DType::kUInt8,   DType::kInt8,    DType::kInt16,    DType::kInt32,
                                        DType::kInt64,   DType::kFloat16, DType::kBFloat16, DType::kFloat32,
                                        DType::kFloat64, DType::kBool};

inline const std::vector<ReduceOp>& every_reduce_op() {
  static const std::vector<ReduceOp> ops = {ReduceOp::SUM, ReduceOp::AVG,  ReduceOp::PRODUCT,
                                            ReduceOp::MIN, ReduceOp::MAX,  ReduceOp::BAND,
                                            ReduceOp::BOR, ReduceOp::BXOR, ReduceOp::premul_sum(0.5)};
  return ops;
}

/// Whether the combination makes sense; the others are refused, which is a test of its own.
inline bool makes_sense(const ReduceOp& op, DType dtype) {
  switch (op.kind()) {
    case ReduceOp::BAND:
    case ReduceOp::BOR:
    case ReduceOp::BXOR:
      return !is_floating_point(dtype);
    case ReduceOp::PREMUL_SUM:
      return is_floating_point(dtype);
    case ReduceOp::AVG:
      return dtype != DType::kBool;
    default:
      return true;
  }
}

/// How a tensor lies in memory.
enum class Layout : std::uint8_t { kContiguous, kEveryOther, kTransposed, kEmpty, kOneElement, kLong };
inline constexpr Layout kEveryLayout[] = {Layout::kContiguous, Layout::kEveryOther, Layout::kTransposed,
                                          Layout::kEmpty,      Layout::kOneElement, Layout::kLong};

/// A tensor of a layout inside memory whose other elements are known.
class Placed {
 public:
  Placed(Layout layout, DType dtype) : layout_(layout) {
    switch (layout) {
      case Layout::kEveryOther:
        base_ = full({26}, 1, dtype);
        view_ = base_.slice(0, 0, 26, 2);
        break;
      case Layout::kTransposed:
        base_ = full({4, 3}, 1, dtype);
        view_ = base_.transpose(0, 1);
        break;
      case Layout::kEmpty:
        view_ = base_ = full({0}, 1, dtype);
        break;
      case Layout::kOneElement:
        view_ = base_ = full({}, 1, dtype);
        break;
      case Layout::kLong:  // More than the backends move in one piece, and divisible by nothing.
        view_ = base_ = full({20'011}, 1, dtype);
        break;
      case Layout::kContiguous:
        view_ = base_ = full({13}, 1, dtype);
        break;
    }
  }

  /// Filled with what `rank` contributes.
  Placed& contribute(int rank, const ReduceOp& op = ReduceOp::SUM) {
    view_.copy_(contribution(rank, op).to(view_.dtype()));
    return *this;
  }

  /// Small integers, which every dtype holds exactly, also reduced over 8 ranks.
  Tensor contribution(int rank, const ReduceOp& op) const {
    Tensor values = empty(view_.shape(), DType::kFloat64);
    const bool is_product = op.kind() == ReduceOp::PRODUCT;
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      const auto varied = (i + rank * 3) % 5;
      double value = is_product ? (rank < 5 && varied > 1 ? 2 : 1) : static_cast<double>(varied);
      if (view_.dtype() == DType::kBool) value = varied > 1 ? 1 : 0;
      values.data<double>()[i] = value;
    }
    return values;
  }

  /// The reduction of all ranks' contributions, by a plain loop.
  Tensor reduced(const ReduceOp& op, int size) const {
    Tensor sum = contribution(0, op).clone();
    if (op.kind() == ReduceOp::PREMUL_SUM) sum.mul_(op.factor());
    for (int rank = 1; rank < size; ++rank) {
      const Tensor next = contribution(rank, op);
      for (std::int64_t i = 0; i < sum.numel(); ++i) {
        double& x = sum.data<double>()[i];
        x = combine(op, x, next.data<double>()[i]);
      }
    }
    if (op.kind() == ReduceOp::AVG) {
      for (auto& x : sum.span<double>()) {
        x /= size;
        if (!is_floating_point(view_.dtype())) x = std::trunc(x);
      }
    }
    if (view_.dtype() == DType::kBool) {
      for (auto& x : sum.span<double>()) x = x != 0 ? 1 : 0;
    }
    return sum.to(view_.dtype());
  }

  const Tensor& tensor() const { return view_; }

  void check_is(const Tensor& expected, const std::string& what) const {
    check_equal(view_, expected, what);
    if (layout_ != Layout::kEveryOther) return;
    check_equal(base_.slice(0, 1, 26, 2), full({13}, 1, base_.dtype()), what + ", the neighbours");
  }
  void check_is_contribution_of(int rank, const std::string& what) const {
    check_is(contribution(rank, ReduceOp::SUM).to(view_.dtype()), what);
  }

 private:
  static double combine(const ReduceOp& op, double x, double y) {
    const auto a = static_cast<std::int64_t>(x);
    const auto b = static_cast<std::int64_t>(y);
    switch (op.kind()) {
      case ReduceOp::PRODUCT:
        return x * y;
      case ReduceOp::MIN:
        return std::min(x, y);
      case ReduceOp::MAX:
        return std::max(x, y);
      case ReduceOp::BAND:
        return static_cast<double>(a & b);
      case ReduceOp::BOR:
        return static_cast<double>(a | b);
      case ReduceOp::BXOR:
        return static_cast<double>(a ^ b);
      case ReduceOp::PREMUL_SUM:
        return x + op.factor() * y;
      default:
        return x + y;
    }
  }

  Layout layout_;
  Tensor base_;
  Tensor view_;
};

/// One row of the matrix: a dtype and a layout, on the ranks of the default group.
class MatrixRow {
 public:
  MatrixRow(DType dtype, Layout layout)
      : dtype_(dtype),
        layout_(layout),
        rank_(distributed::get_rank()),
        size_(distributed::get_world_size()),
        what_(std::string(to_string(dtype)) + ", layout " + std::to_string(static_cast<int>(layout))) {}

  void run() const {
    for (const auto& op : every_reduce_op()) {
      if (makes_sense(op, dtype_)) reductions(op);
    }
    broadcasts();
    gathers();
    scatters_and_exchanges();
    ring();
  }

 private:
  std::string name(const char* call, const ReduceOp& op) const {
    return std::string(call) + " " + std::string(distributed::to_string(op)) + " " + what_;
  }
  std::string name(const char* call) const { return std::string(call) + " " + what_; }

  std::vector<Placed> make_places() const {
    std::vector<Placed> result;
    for (int r = 0; r < size_; ++r) result.emplace_back(layout_, dtype_);
    return result;
  }
  static std::vector<Tensor> tensors_of(const std::vector<Placed>& places) {
    std::vector<Tensor> tensors;
    for (const auto& place : places) tensors.push_back(place.tensor());
    return tensors;
  }
  Placed mine(const ReduceOp& op = ReduceOp::SUM) const { return Placed(layout_, dtype_).contribute(rank_, op); }

  void reductions(const ReduceOp& op) const {
    Placed all = mine(op);
    const Tensor expected = all.reduced(op, size_);
    distributed::all_reduce(all.tensor(), {.op = op});
    all.check_is(expected, name("all_reduce", op));

    Placed again = mine(op);
    Placed more = mine(op);
    distributed::all_reduce_coalesced({again.tensor(), more.tensor()}, {.op = op, .async_op = true})->wait();
    again.check_is(expected, name("all_reduce_coalesced", op));
    more.check_is(expected, name("all_reduce_coalesced", op));

    const int root = size_ - 1;
    Placed rooted = mine(op);
    distributed::reduce(rooted.tensor(), {.dst = root, .op = op});
    rooted.check_is(rank_ == root ? expected : rooted.contribution(rank_, op).to(dtype_), name("reduce", op));

    // Rank r's input for each rank is what rank r contributes; so each output is the same reduction.
    std::vector<Placed> inputs = make_places();
    for (auto& input : inputs) input.contribute(rank_, op);
    Placed output(layout_, dtype_);
    distributed::reduce_scatter(output.tensor(), tensors_of(inputs), {.op = op});
    output.check_is(expected, name("reduce_scatter", op));

    const std::int64_t count = output.tensor().numel();
    Tensor whole = empty({size_ * count}, dtype_);
    for (int r = 0; r < size_; ++r) {
      whole.slice(0, r * count, (r + 1) * count).copy_(inputs[0].tensor().contiguous().flatten());
    }
    Placed single(layout_, dtype_);
    distributed::reduce_scatter_single(single.tensor(), whole, {.op = op});
    single.check_is(expected, name("reduce_scatter_single", op));
  }

  void broadcasts() const {
    for (int root = 0; root < size_; ++root) {
      Placed tensor = mine();
      distributed::broadcast(tensor.tensor(), {.src = root});
      tensor.check_is_contribution_of(root, name("broadcast"));
    }
  }

  void gathers() const {
    const Placed input = mine();
    const std::int64_t count = input.tensor().numel();
    std::vector<Placed> outputs = make_places();
    distributed::all_gather(tensors_of(outputs), input.tensor());
    for (int r = 0; r < size_; ++r)
      outputs[static_cast<std::size_t>(r)].check_is_contribution_of(r, name("all_gather"));

    Tensor whole = zeros({size_ * count}, dtype_);
    distributed::all_gather_single(whole, input.tensor());
    check_parts(whole, count, "all_gather_single");

    const int root = size_ / 2;
    std::vector<Placed> gathered = make_places();
    distributed::gather(input.tensor(), rank_ == root ? tensors_of(gathered) : std::vector<Tensor>{}, {.dst = root});
    for (int r = 0; rank_ == root && r < size_; ++r) {
      gathered[static_cast<std::size_t>(r)].check_is_contribution_of(r, name("gather"));
    }
    Tensor single = zeros({size_ * count}, dtype_);
    distributed::gather_single(input.tensor(), rank_ == root ? single : Tensor(), {.dst = root});
    if (rank_ == root) check_parts(single, count, "gather_single");
  }

  void check_parts(const Tensor& whole, std::int64_t count, const char* call) const {
    for (int r = 0; r < size_; ++r) {
      const Placed expected = Placed(layout_, dtype_).contribute(r);
      check_equal(whole.slice(0, r * count, (r + 1) * count), expected.tensor().contiguous().flatten(), name(call));
    }
  }

  void scatters_and_exchanges() const {
    const int root = size_ / 2;
    std::vector<Placed> leaving = make_places();
    for (int r = 0; r < size_; ++r) leaving[static_cast<std::size_t>(r)].contribute(r + rank_);
    Placed output(layout_, dtype_);
    distributed::scatter(output.tensor(), rank_ == root ? tensors_of(leaving) : std::vector<Tensor>{}, {.src = root});
    output.check_is_contribution_of(rank_ + root, name("scatter"));

    std::vector<Placed> arriving = make_places();
    distributed::all_to_all(tensors_of(arriving), tensors_of(leaving));
    for (int r = 0; r < size_; ++r) {
      arriving[static_cast<std::size_t>(r)].check_is_contribution_of(r + rank_, name("all_to_all"));
    }

    // Rank r sends rank s r + s + 1 rows of value r + 1; both sides know.
    std::vector<std::int64_t> splits;
    std::int64_t rows = 0;
    for (int r = 0; r < size_; ++r) splits.push_back(r + rank_ + 1);
    for (const auto split : splits) rows += split;
    const Tensor input = full({rows, 2}, rank_ + 1, dtype_);
    Tensor exchanged = zeros({rows, 2}, dtype_);
    distributed::all_to_all_single(exchanged, input, {.output_split_sizes = splits, .input_split_sizes = splits});
    std::int64_t start = 0;
    for (int r = 0; r < size_; ++r) {
      const auto length = splits[static_cast<std::size_t>(r)];
      check_equal(exchanged.slice(0, start, start + length), full({length, 2}, r + 1, dtype_),
                  name("all_to_all_single"));
      start += length;
    }
  }

  void ring() const {
    if (size_ == 1) return;
    const int next = (rank_ + 1) % size_;
    const int previous = (rank_ + size_ - 1) % size_;
    const Placed leaving = mine();
    Placed arriving(layout_, dtype_);
    const auto sent = distributed::isend(leaving.tensor(), {.dst = next, .tag = 3});
    check(distributed::recv(arriving.tensor(), {.src = previous, .tag = 3}) == previous, name("recv, its sender"));
    sent->wait();
    arriving.check_is_contribution_of(previous, name("send and recv"));
  }

  DType dtype_;
  Layout layout_;
  int rank_;
  int size_;
  std::string what_;
};

/// The whole matrix, or a part of it for the slow builds.
inline void run_operation_matrix(bool is_reduced = false) {
  for (const auto dtype : kEveryDType) {
    if (is_reduced && dtype != DType::kFloat32 && dtype != DType::kBFloat16 && dtype != DType::kInt8) continue;
    for (const auto layout : kEveryLayout) {
      const bool is_for_long = dtype == DType::kFloat32 || (!is_reduced && dtype == DType::kFloat16);
      if (layout == Layout::kLong && !is_for_long) continue;
      MatrixRow(dtype, layout).run();
    }
  }
  distributed::barrier();
}

/// What makes no sense is refused before anything is sent.
inline void run_refusals() {
  for (const auto dtype : kEveryDType) {
    const Tensor tensor = ones({2}, dtype);
    for (const auto& op : every_reduce_op()) {
      if (makes_sense(op, dtype)) continue;
      refused([&] { distributed::all_reduce(tensor, {.op = op}); });
      refused([&] { distributed::reduce(tensor, {.op = op}); });
      refused([&] {
        distributed::reduce_scatter(
            tensor, std::vector<Tensor>(static_cast<std::size_t>(distributed::get_world_size()), tensor), {.op = op});
      });
    }
  }
  distributed::barrier();
}

}  // namespace tensorplay::testing
