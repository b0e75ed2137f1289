#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/tensor.hpp"

#include <catch2/catch.hpp>
#include <dlpack/dlpack.h>

#include <array>

using namespace tensorplay;

TEST_CASE("a tensor goes through DLPack and back without a copy") {
  const Tensor original = arange(12, DType::kFloat32).reshape({3, 4}).transpose(0, 1);
  const Tensor back = Tensor::from_dlpack(original.to_dlpack());
  REQUIRE(back.data() == original.data());
  REQUIRE(equal(back, original));
}

TEST_CASE("the elements stay alive while a DLPack consumer has them") {
  DLManagedTensor* loan = full({4}, 3).to_dlpack();
  REQUIRE(static_cast<float*>(loan->dl_tensor.data)[3] == 3);
  loan->deleter(loan);
}

TEST_CASE("the producer's deleter runs once, after the last view") {
  static int deleted;
  deleted = 0;
  std::array<std::int64_t, 2> memory = {4, 5};
  std::array<std::int64_t, 1> shape = {1};
  DLManagedTensor managed{};
  managed.dl_tensor = {memory.data(), {kDLCPU, 0}, 1, {kDLInt, 64, 1}, shape.data(), nullptr, sizeof(std::int64_t)};
  managed.deleter = [](DLManagedTensor*) { ++deleted; };
  {
    Tensor view = Tensor::from_dlpack(&managed).slice(0, 0, 1);
    REQUIRE(deleted == 0);
    REQUIRE(view.item() == 5);  // byte_offset counts.
  }
  REQUIRE(deleted == 1);
}

TEST_CASE("an element type that no tensor has is refused and stays with its producer") {
  std::array<std::int64_t, 1> shape = {1};
  DLManagedTensor managed{};
  float memory[2] = {};
  managed.dl_tensor = {memory, {kDLCPU, 0}, 1, {kDLComplex, 64, 1}, shape.data(), nullptr, 0};
  REQUIRE_THROWS_AS(Tensor::from_dlpack(&managed), distributed::InvalidArgument);
}
