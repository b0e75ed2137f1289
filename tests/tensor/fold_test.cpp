#include "runtime/tensor/fold.hpp"

#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace tensorplay;
using distributed::ReduceOp;

namespace {

Tensor fold_all(const ReduceOp& op, const std::vector<Tensor>& sources) {
  std::vector<const void*> pointers;
  for (const auto& source : sources) pointers.push_back(source.data());
  Tensor out = empty(sources[0].shape(), sources[0].dtype());
  fold(op, out.dtype(), pointers, out.data(), static_cast<std::size_t>(out.numel()));
  return out;
}

/// Small integers, which every dtype holds exactly.
Tensor small_numbers(std::int64_t count, DType dtype, int salt) {
  Tensor values = empty({count}, DType::kFloat64);
  for (std::int64_t i = 0; i < count; ++i) {
    values.data<double>()[i] = static_cast<double>((i * 7 + salt * 3) % (dtype == DType::kBool ? 2 : 4));
  }
  return values.to(dtype);
}

double reference(ReduceOp::Kind kind, DType dtype, double x, double y) {
  const auto a = static_cast<long>(x);
  const auto b = static_cast<long>(y);
  double result = 0;
  switch (kind) {
    case ReduceOp::PRODUCT:
      result = x * y;
      break;
    case ReduceOp::MIN:
      result = std::min(x, y);
      break;
    case ReduceOp::MAX:
      result = std::max(x, y);
      break;
    case ReduceOp::BAND:
      result = static_cast<double>(a & b);
      break;
    case ReduceOp::BOR:
      result = static_cast<double>(a | b);
      break;
    case ReduceOp::BXOR:
      result = static_cast<double>(a ^ b);
      break;
    default:
      result = x + y;
  }
  return dtype == DType::kBool && result > 1 ? 1 : result;
}

}  // namespace

TEST_CASE("every operation agrees with a plain loop for every dtype, size and number of sources") {
  const auto dtype = GENERATE(DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kFloat16,
                              DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kBool);
  const auto kind = GENERATE(ReduceOp::SUM, ReduceOp::PRODUCT, ReduceOp::MIN, ReduceOp::MAX, ReduceOp::BAND,
                             ReduceOp::BOR, ReduceOp::BXOR);
  const bool is_bitwise = kind == ReduceOp::BAND || kind == ReduceOp::BOR || kind == ReduceOp::BXOR;
  if (is_bitwise && is_floating_point(dtype)) {
    REQUIRE_THROWS_AS(check_can_fold(kind, dtype), distributed::InvalidArgument);
    return;
  }
  for (const int sources : {1, 2, 3, 5}) {
    for (const std::int64_t count : {0, 1, 7, 1024, 2051}) {
      std::vector<Tensor> inputs;
      for (int s = 0; s < sources; ++s) inputs.push_back(small_numbers(count, dtype, s));
      Tensor expected = inputs[0].to(DType::kFloat64).clone();
      for (int s = 1; s < sources; ++s) {
        const Tensor next = inputs[static_cast<std::size_t>(s)].to(DType::kFloat64);
        for (std::int64_t i = 0; i < count; ++i) {
          double& x = expected.data<double>()[i];
          x = reference(kind, dtype, x, next.data<double>()[i]);
        }
      }
      REQUIRE(equal(fold_all(kind, inputs), expected.to(dtype)));
    }
  }
}

TEST_CASE("the average of 16-bit floats is rounded once, not at each step") {
  // 2048 + 1 is 2048 in binary16; only a wider sum keeps the ones.
  std::vector<Tensor> inputs = {full({3}, 2048, DType::kFloat16)};
  for (int i = 0; i < 7; ++i) inputs.push_back(full({3}, 1, DType::kFloat16));
  REQUIRE(equal(fold_all(ReduceOp::SUM, inputs), full({3}, 2056, DType::kFloat16)));
  REQUIRE(equal(fold_all(ReduceOp::AVG, inputs), full({3}, 257, DType::kFloat16)));
}

TEST_CASE("the average of integers does not overflow and truncates towards zero") {
  REQUIRE(equal(fold_all(ReduceOp::AVG, {full({2}, 120, DType::kInt8), full({2}, 120, DType::kInt8)}),
                full({2}, 120, DType::kInt8)));
  REQUIRE(equal(fold_all(ReduceOp::AVG, {full({2}, -3, DType::kInt32), full({2}, 0, DType::kInt32)}),
                full({2}, -1, DType::kInt32)));
}

TEST_CASE("integer sums wrap around") {
  REQUIRE(equal(fold_all(ReduceOp::SUM, {tensor<std::int32_t>({2147483647}), tensor<std::int32_t>({1})}),
                tensor<std::int32_t>({-2147483647 - 1})));
}

TEST_CASE("a NaN is not lost in a minimum or maximum") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto kind : {ReduceOp::MIN, ReduceOp::MAX}) {
    REQUIRE(std::isnan(fold_all(kind, {tensor<float>({nan}), tensor<float>({1.0F})}).item()));
    REQUIRE(std::isnan(fold_all(kind, {tensor<float>({1.0F}), tensor<float>({nan})}).item()));
  }
}

TEST_CASE("the result may lie over any of the sources") {
  Tensor a = arange(3000, DType::kFloat32);
  Tensor b = full({3000}, 1.0);
  const Tensor expected = fold_all(ReduceOp::SUM, {a, b});
  const std::vector<const void*> sources = {a.data(), b.data()};
  fold(ReduceOp::SUM, DType::kFloat32, sources, b.data(), 3000);
  REQUIRE(equal(b, expected));
}

TEST_CASE("a premultiplied sum scales every contribution") {
  REQUIRE(equal(fold_all(ReduceOp::premul_sum(0.5), {full({4}, 3.0), full({4}, 5.0)}), full({4}, 4.0)));
  REQUIRE_THROWS_AS(check_can_fold(ReduceOp::premul_sum(2), DType::kInt32), distributed::InvalidArgument);
}
