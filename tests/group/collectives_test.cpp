#include "tensorplay/distributed.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <stdexcept>

using namespace tensorplay;
using namespace tensorplay::distributed;
using tensorplay::testing::all_well;
using tensorplay::testing::run_ranks;

namespace {

/// Catch2's assertions are not for threads: a rank throws, and the test looks at how the ranks ended.
void check(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

void check_equal(const Tensor& actual, const Tensor& expected, const std::string& what) {
  if (!equal(actual, expected)) {
    throw std::runtime_error(what + ": " + to_string(actual) + " instead of " + to_string(expected));
  }
}

/// Rank r's contribution: small integers, which every dtype holds exactly, also summed.
Tensor contribution(int rank, std::int64_t count, DType dtype) {
  Tensor values = empty({count}, DType::kFloat64);
  for (std::int64_t i = 0; i < count; ++i) {
    values.data<double>()[i] = static_cast<double>((i + rank * 3) % (dtype == DType::kBool ? 2 : 5));
  }
  return values.to(dtype);
}

double combine(ReduceOp::Kind kind, double x, double y) {
  switch (kind) {
    case ReduceOp::PRODUCT:
      return x * y;
    case ReduceOp::MIN:
      return std::min(x, y);
    case ReduceOp::MAX:
      return std::max(x, y);
    default:
      return x + y;
  }
}

Tensor reference(ReduceOp::Kind kind, int size, std::int64_t count, DType dtype) {
  Tensor result = contribution(0, count, dtype).to(DType::kFloat64).clone();
  for (int rank = 1; rank < size; ++rank) {
    const Tensor next = contribution(rank, count, dtype).to(DType::kFloat64);
    for (std::int64_t i = 0; i < count; ++i) {
      double& x = result.data<double>()[i];
      x = combine(kind, x, next.data<double>()[i]);
    }
  }
  if (kind == ReduceOp::AVG) {
    for (auto& x : result.span<double>()) {
      x /= size;
      if (!is_floating_point(dtype)) x = std::trunc(x);
    }
  }
  return result.to(dtype);
}

constexpr DType kAllDTypes[] = {DType::kUInt8,   DType::kInt8,     DType::kInt16,   DType::kInt32,  DType::kInt64,
                                DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64};
constexpr ReduceOp::Kind kAllKinds[] = {ReduceOp::SUM, ReduceOp::AVG, ReduceOp::PRODUCT, ReduceOp::MIN, ReduceOp::MAX};

}  // namespace

TEST_CASE("all_reduce gives every rank what a plain loop gives, for every dtype, operation and world size") {
  const int size = GENERATE(1, 2, 3, 4, 5);
  REQUIRE(run_ranks(size, [size](int rank) {
            for (const auto dtype : kAllDTypes) {
              for (const auto kind : kAllKinds) {
                for (const std::int64_t count : {0, 1, 1001}) {
                  Tensor mine = contribution(rank, count, dtype);
                  all_reduce(mine, {.op = kind});
                  check_equal(mine, reference(kind, size, count, dtype),
                              std::string(to_string(ReduceOp(kind))) + " of " + std::string(to_string(dtype)));
                }
              }
            }
          }) == all_well(size));
}

TEST_CASE("large tensors are reduced piece by piece to the same result") {
  const int size = GENERATE(1, 2, 3, 5);
  REQUIRE(run_ranks(size, [size](int rank) {
            for (const std::int64_t count : {5'000, 1'048'579, 3'000'017}) {
              Tensor mine = contribution(rank, count, DType::kFloat32);
              all_reduce(mine);
              check_equal(mine, reference(ReduceOp::SUM, size, count, DType::kFloat32), "sum");
            }
          }) == all_well(size));
}

TEST_CASE("a sum of floats is the same bits on every rank, in every run, and for every way it travelled") {
  constexpr int kSize = 4;
  constexpr std::int64_t kCount = 20'000;  // Above the limit for one step; its parts are below.
  std::vector<Tensor> results(kSize);
  std::vector<Tensor> again(kSize);
  std::vector<Tensor> in_parts(kSize);
  const auto run = [&](std::vector<Tensor>& out, bool by_parts) {
    REQUIRE(run_ranks(kSize, [&, by_parts](int rank) {
              Tensor mine = randn({kCount}, static_cast<std::uint64_t>(rank));
              if (by_parts) {
                for (std::int64_t start = 0; start < kCount; start += 1000) {
                  all_reduce(mine.slice(0, start, start + 1000));
                }
              } else {
                all_reduce(mine);
              }
              out[static_cast<std::size_t>(rank)] = mine;
            }) == all_well(kSize));
  };
  run(results, false);
  run(again, false);
  run(in_parts, true);
  for (int rank = 0; rank < kSize; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    REQUIRE(equal(results[r], results[0]));
    REQUIRE(equal(again[r], results[0]));
    REQUIRE(equal(in_parts[r], results[0]));
  }
}

TEST_CASE("a strided tensor is reduced in its own elements and no neighbour is touched") {
  REQUIRE(run_ranks(3, [](int) {
            Tensor base = ones({8});
            all_reduce(base.slice(0, 0, 8, 2));
            check_equal(base, tensor<float>({3, 1, 3, 1, 3, 1, 3, 1}), "strided");
          }) == all_well(3));
}

TEST_CASE("broadcast gives every rank the source's elements, from any source") {
  const int size = GENERATE(1, 2, 3, 4, 5);
  REQUIRE(run_ranks(size, [size](int rank) {
            for (int source = 0; source < size; ++source) {
              for (const auto dtype : kAllDTypes) {
                Tensor mine = contribution(rank, 777, dtype);
                broadcast(mine, {.src = source});
                check_equal(mine, contribution(source, 777, dtype), "broadcast");
              }
            }
          }) == all_well(size));
}

TEST_CASE("reduce gives the destination the result and leaves the others as they were") {
  const int size = GENERATE(1, 2, 3, 5);
  REQUIRE(run_ranks(size, [size](int rank) {
            for (int destination = 0; destination < size; ++destination) {
              for (const std::int64_t count : {1, 300'007}) {
                Tensor mine = contribution(rank, count, DType::kInt32);
                reduce(mine, {.dst = destination});
                check_equal(mine,
                            rank == destination ? reference(ReduceOp::SUM, size, count, DType::kInt32)
                                                : contribution(rank, count, DType::kInt32),
                            "reduce");
              }
            }
          }) == all_well(size));
}

TEST_CASE("all_gather gives every rank all inputs, as a list and as one tensor") {
  const int size = GENERATE(1, 2, 3, 4, 5);
  REQUIRE(run_ranks(size, [size](int rank) {
            for (const auto dtype : kAllDTypes) {
              const Tensor mine = contribution(rank, 33, dtype);
              std::vector<Tensor> outputs;
              for (int r = 0; r < size; ++r) outputs.push_back(zeros({33}, dtype));
              all_gather(outputs, mine);
              Tensor whole = zeros({size, 33}, dtype);
              all_gather_single(whole, mine);
              for (int r = 0; r < size; ++r) {
                check_equal(outputs[static_cast<std::size_t>(r)], contribution(r, 33, dtype), "list");
                check_equal(whole.select(0, r), contribution(r, 33, dtype), "single");
              }
            }
          }) == all_well(size));
}

TEST_CASE("all_gather fills strided outputs") {
  REQUIRE(run_ranks(2, [](int rank) {
            Tensor columns = zeros({3, 2});
            all_gather({columns.select(1, 0), columns.select(1, 1)}, full({3}, rank + 1));
            check_equal(columns.flatten(), tensor<float>({1, 2, 1, 2, 1, 2}), "columns");
          }) == all_well(2));
}

TEST_CASE("reduce_scatter gives each rank its part of the reduction, from a list and from one tensor") {
  const int size = GENERATE(1, 2, 3, 5);
  REQUIRE(run_ranks(size, [size](int rank) {
            for (const std::int64_t count : {1, 29, 300'000}) {
              std::vector<Tensor> inputs;
              Tensor whole = zeros({size, count}, DType::kInt64);
              for (int r = 0; r < size; ++r) {
                inputs.push_back(full({count}, rank * 10 + r, DType::kInt64));
                whole.select(0, r).fill_(rank * 10 + r);
              }
              const double expected = 10.0 * size * (size - 1) / 2 + rank * size;
              Tensor output = zeros({count}, DType::kInt64);
              reduce_scatter(output, inputs);
              check_equal(output, full({count}, expected, DType::kInt64), "list");
              output.fill_(0);
              reduce_scatter_single(output, whole);
              check_equal(output, full({count}, expected, DType::kInt64), "single");
            }
          }) == all_well(size));
}

TEST_CASE("nobody leaves a barrier before everybody has come") {
  const int size = GENERATE(1, 2, 3, 4, 5);
  std::atomic<int> arrived{0};
  REQUIRE(run_ranks(size, [&](int) {
            for (int round = 1; round <= 20; ++round) {
              ++arrived;
              barrier();
              check(arrived >= round * size, "left too early");
            }
          }) == all_well(size));
}

TEST_CASE("send and recv carry tensors of any layout, told apart by their tags") {
  REQUIRE(run_ranks(3, [](int rank) {
            if (rank == 0) {
              send(arange(6).reshape({2, 3}).transpose(0, 1), {.dst = 2, .tag = 7});
              send(full({2}, 8), {.dst = 2, .tag = 8});
            } else if (rank == 2) {
              Tensor got = zeros({3, 2}, DType::kInt64);
              check(recv(got, {.src = 0, .tag = 7}) == 0, "sender");
              check_equal(got.flatten(), tensor<std::int64_t>({0, 3, 1, 4, 2, 5}), "strided send");
              Tensor two = zeros({2});
              recv(two, {.src = 0, .tag = 8});
              check_equal(two, full({2}, 8), "second");
            }
          }) == all_well(3));
}

TEST_CASE("asynchronous operations complete in order and give the results of synchronous ones") {
  REQUIRE(run_ranks(3, [](int rank) {
            std::vector<Tensor> tensors;
            std::vector<WorkPtr> works;
            std::atomic<int> done{0};
            for (int i = 0; i < 50; ++i) {
              tensors.push_back(full({100}, rank + i));
              works.push_back(all_reduce(tensors.back(), {.async_op = true}));
              works.back()->get_future()->add_done_callback([&done, i](const Future&) {
                if (done == i) ++done;
              });
            }
            Tensor last = full({5}, rank);
            all_reduce(last);  // Behind all of them.
            check_equal(last, full({5}, 3), "synchronous");
            check(done == 50, "completed out of order");
            for (int i = 0; i < 50; ++i) {
              const auto k = static_cast<std::size_t>(i);
              check(works[k]->is_success(), "success");
              check_equal(tensors[k], full({100}, 3 + 3 * i), "asynchronous");
            }
          }) == all_well(3));
}

TEST_CASE("a Work that is dropped still completes") {
  REQUIRE(run_ranks(2, [](int) {
            Tensor mine = ones({1000});
            all_reduce(mine, {.async_op = true});
            barrier();
            check_equal(mine, full({1000}, 2), "dropped");
          }) == all_well(2));
}

TEST_CASE("what one rank can see is wrong is refused before anything is sent, and the group stays usable") {
  REQUIRE(run_ranks(2, [](int) {
            const auto refused = [](const std::function<void()>& call) {
              try {
                call();
              } catch (const InvalidArgument&) {
                return;
              }
              throw std::runtime_error("was not refused");
            };
            Tensor floats = ones({4});
            float remote = 0;
            refused([&] { all_reduce(floats, {.op = ReduceOp::BAND}); });
            refused([&] { all_reduce(Tensor()); });
            refused([&] { broadcast(floats, {.src = 2}); });
            refused([&] { broadcast(floats, {.src = 0, .group_src = 0}); });
            refused([&] { all_gather({floats}, floats); });
            refused([&] { all_gather({zeros({5}), zeros({5})}, floats); });
            refused([&] { all_gather_single(zeros({9}), floats); });
            refused([&] { reduce_scatter(floats, {floats, zeros({4}, DType::kFloat64)}); });
            refused([&] { send(floats, {.dst = get_rank()}); });
            refused([&] { send(floats, {.tag = 1}); });
            refused([&] {
              all_reduce(Tensor::from_pointer(&remote, DType::kFloat32, {1}, {}, Device(DeviceType::kCUDA, 0)));
            });
            all_reduce(floats);
            check_equal(floats, full({4}, 2), "afterwards");
          }) == all_well(2));
}

TEST_CASE("the older names of the single-tensor collectives do the same") {
  REQUIRE(run_ranks(2, [](int rank) {
            Tensor gathered = zeros({2});
            all_gather_into_tensor(gathered, full({1}, rank));
            check_equal(gathered, tensor<float>({0, 1}), "all_gather_into_tensor");
            Tensor rooted = zeros({2});
            gather_into_tensor(full({1}, rank + 1), rank == 0 ? rooted : Tensor());
            check_equal(rooted, rank == 0 ? tensor<float>({1, 2}) : zeros({2}), "gather_into_tensor");
            Tensor part = zeros({1});
            reduce_scatter_tensor(part, tensor<float>({1, 2}));
            check(part.item() == 2 * (rank + 1), "reduce_scatter_tensor");
          }) == all_well(2));
}
