#include "tensorplay/distributed/tensor.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

using namespace tensorplay;
using distributed::InvalidArgument;

TEST_CASE("a tensor over the caller's memory shares it") {
  std::vector<float> memory = {1, 2, 3, 4};
  Tensor view = Tensor::from_span(std::span(memory));
  view.add_(1);
  REQUIRE(memory == std::vector<float>{2, 3, 4, 5});
  memory[0] = 9;
  REQUIRE(view.select(0, 0).item() == 9);
}

TEST_CASE("owned memory lives as long as the last view of it") {
  int freed = 0;
  auto* memory = new std::array<std::int32_t, 4>{1, 2, 3, 4};
  Tensor view;
  {
    Tensor owner = Tensor::from_pointer(memory->data(), DType::kInt32, {4}, {}, {}, [&](void*) {
      ++freed;
      delete memory;
    });
    view = owner.slice(0, 1, 3);
  }
  REQUIRE(freed == 0);
  REQUIRE(equal(view, tensor<std::int32_t>({2, 3})));
  view = {};
  REQUIRE(freed == 1);
}

TEST_CASE("a strided view touches its own elements and no neighbour") {
  Tensor base = ones({2, 6});
  base.slice(1, 0, 6, 2).fill_(5);
  REQUIRE(equal(base.flatten(), tensor<float>({5, 1, 5, 1, 5, 1, 5, 1, 5, 1, 5, 1})));
  REQUIRE_FALSE(base.slice(1, 0, 6, 2).is_contiguous());
  REQUIRE(equal(base.slice(1, 0, 6, 2).contiguous(), full({2, 3}, 5)));
}

TEST_CASE("a transposed tensor reads in the other order") {
  const Tensor matrix = arange(6).reshape({2, 3});
  REQUIRE(equal(matrix.transpose(0, 1).contiguous().flatten(), tensor<std::int64_t>({0, 3, 1, 4, 2, 5})));
  Tensor cube = arange(24).reshape({2, 3, 4});
  REQUIRE(cube.transpose(0, 2).clone().transpose(0, 2).clone().flatten().data<std::int64_t>()[23] == 23);
  REQUIRE(equal(cube.transpose(0, 2).clone().transpose(0, 2).contiguous(), cube));
}

TEST_CASE("copies convert between dtypes") {
  REQUIRE(equal(tensor<double>({0, 1.5, -2}).to(DType::kInt32), tensor<std::int32_t>({0, 1, -2})));
  REQUIRE(equal(tensor<double>({0, 1.5, -2}).to(DType::kBool), tensor<bool>({false, true, true})));
  REQUIRE(tensor<float>({0.1F}).to(DType::kBFloat16).item() == Approx(0.1).epsilon(0.01));
}

TEST_CASE("what does not fit is refused with both sides in the text") {
  REQUIRE_THROWS_WITH(zeros({2}).add_(zeros({3})), Catch::Contains("(2)") && Catch::Contains("(3)"));
  REQUIRE_THROWS_WITH(zeros({2}).data<double>(), Catch::Contains("float32") && Catch::Contains("float64"));
  REQUIRE_THROWS_AS(zeros({2, 2}).reshape({3}), InvalidArgument);
  REQUIRE_THROWS_AS(zeros({2}).slice(0, 0, 3), InvalidArgument);
  REQUIRE_THROWS_AS(zeros({2}).size(1), InvalidArgument);
  REQUIRE_THROWS_AS(empty({-1}), InvalidArgument);
  REQUIRE_THROWS_AS(empty({1LL << 40, 1LL << 40}), InvalidArgument);
  float one = 1;
  REQUIRE_THROWS_AS(Tensor::from_pointer(&one, {1}, {-1}), InvalidArgument);
  Tensor remote = Tensor::from_pointer(&one, DType::kFloat32, {1}, {}, Device(DeviceType::kCUDA, 0));
  REQUIRE_THROWS_WITH(remote.fill_(0), Catch::Contains("cuda:0"));
}

TEST_CASE("empty and scalar tensors are tensors too") {
  REQUIRE(zeros({0, 3}).numel() == 0);
  REQUIRE(zeros({0, 3}).is_contiguous());
  REQUIRE(full({}, 7).item() == 7);
  REQUIRE(full({}, 7).add_(1).item() == 8);
  REQUIRE_FALSE(Tensor().defined());
}

TEST_CASE("the same seed gives the same normal numbers, another seed others") {
  const Tensor numbers = randn({10'000}, 7, DType::kFloat64);
  REQUIRE(equal(numbers, randn({10'000}, 7, DType::kFloat64)));
  REQUIRE_FALSE(equal(numbers, randn({10'000}, 8, DType::kFloat64)));
  const auto values = numbers.span<double>();
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 10'000;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  REQUIRE(std::abs(mean) < 0.05);
  REQUIRE(squares / 10'000 == Approx(1.0).epsilon(0.05));
}

TEST_CASE("a printed tensor can be read") {
  REQUIRE(to_string(tensor<float>({1, 2.5})) == "tensor([1, 2.5])");
  REQUIRE(to_string(arange(4).reshape({2, 2})) == "tensor([[0, 1], [2, 3]], dtype=int64)");
  REQUIRE(to_string(arange(2000)) == "tensor([0, 1, 2, ..., 1997, 1998, 1999], dtype=int64)");
  REQUIRE(to_string(zeros({0})) == "tensor([])");
}

TEST_CASE("devices and dtypes have names that can be read back") {
  for (const auto* name : {"cpu", "cuda", "cuda:3", "xpu:0"}) REQUIRE(to_string(parse_device(name)) == name);
  for (const auto* name : {"uint8", "int16", "bfloat16", "float64", "bool"}) {
    REQUIRE(to_string(parse_dtype(name)) == name);
  }
  REQUIRE_THROWS_AS(parse_device("cuda:x"), InvalidArgument);
  REQUIRE_THROWS_AS(parse_device("tpu"), InvalidArgument);
  REQUIRE_THROWS_AS(parse_dtype("float"), InvalidArgument);
}
