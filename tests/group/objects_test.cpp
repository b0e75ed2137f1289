#include "tensorplay/distributed/objects.hpp"

#include "tests/support/rank_checks.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace tensorplay;
using namespace tensorplay::distributed;
using namespace tensorplay::testing;

namespace {

struct Point {
  int x = 0;
  std::string name;
  bool operator==(const Point&) const = default;
};
void to_json(Object& object, const Point& point) {
  object = {{"x", point.x}, {"name", point.name}};
}
void from_json(const Object& object, Point& point) {
  point.x = object.at("x").get<int>();
  point.name = object.at("name").get<std::string>();
}

Object sample(int rank) {
  return {{"rank", rank}, {"list", std::vector<int>(static_cast<std::size_t>(rank), rank)}, {"none", nullptr}};
}

}  // namespace

TEST_CASE("lists of objects are broadcast from any rank") {
  REQUIRE(run_ranks(3, [](int rank) {
            std::vector<Object> list = {sample(rank), "text", 3.5};
            if (rank != 1) list = {nullptr, nullptr, nullptr};
            broadcast_object_list(list, {.src = 1});
            check(list == std::vector<Object>{sample(1), "text", 3.5}, "list");
          }) == all_well(3));
}

TEST_CASE("objects of different sizes are gathered by all and by one") {
  REQUIRE(run_ranks(4, [](int rank) {
            std::vector<Object> all;
            all_gather_object(all, sample(rank));
            std::vector<Object> gathered;
            gather_object(sample(rank), rank == 2 ? &gathered : nullptr, {.dst = 2});
            for (int r = 0; r < 4; ++r) {
              check(all.at(static_cast<std::size_t>(r)) == sample(r), "all");
              if (rank == 2) check(gathered.at(static_cast<std::size_t>(r)) == sample(r), "gathered");
            }
            refused([&] { gather_object(sample(rank), rank == 2 ? nullptr : &gathered, {.dst = 2}); });
          }) == all_well(4));
}

TEST_CASE("objects are scattered, one to each rank") {
  REQUIRE(run_ranks(3, [](int rank) {
            std::vector<Object> output(1);
            const std::vector<Object> inputs = {sample(0), sample(1), sample(2)};
            scatter_object_list(output, rank == 0 ? inputs : std::vector<Object>{});
            check(output[0] == sample(rank), "own object");
            std::vector<Object> none;
            refused([&] { scatter_object_list(none, inputs); });
          }) == all_well(3));
}

TEST_CASE("lists of objects are sent, also to a receiver that takes from anyone") {
  REQUIRE(run_ranks(3, [](int rank) {
            std::vector<Object> list(2);
            if (rank == 1) send_object_list({sample(1), 1}, {.dst = 0});
            if (rank == 0) {
              check(recv_object_list(list) == 1, "sender");
              check(list[0] == sample(1) && list[1] == 1, "list");
            }
          }) == all_well(3));
}

TEST_CASE("types with to_json and from_json travel as themselves") {
  REQUIRE(run_ranks(2, [](int rank) {
            std::vector<Point> all;
            all_gather_object(all, Point{rank, "p" + std::to_string(rank)});
            check(all == std::vector<Point>{{0, "p0"}, {1, "p1"}}, "points");
            std::vector<Point> list = {Point{rank, "b"}};
            broadcast_object_list(list);
            check(list[0].x == 0, "broadcast");
            std::vector<std::string> texts;
            gather_object(std::string("t"), rank == 0 ? &texts : nullptr);
            check(texts.size() == (rank == 0 ? 2U : 0U), "gathered");
          }) == all_well(2));
}

TEST_CASE("tensors are objects: dtype, shape and bytes arrive, a strided one contiguous") {
  REQUIRE(run_ranks(2, [](int rank) {
            std::vector<Tensor> list(3);
            if (rank == 0)
              list = {arange(6).reshape({2, 3}).transpose(0, 1), zeros({0, 4}, DType::kBFloat16), Tensor()};
            broadcast_object_list(list, {.device = Device(DeviceType::kCPU)});
            check(list[0].shape() == Shape{3, 2} && list[0].is_contiguous(), "shape");
            check_equal(list[0].flatten(), tensor<std::int64_t>({0, 3, 1, 4, 2, 5}), "elements");
            check(list[1].dtype() == DType::kBFloat16 && list[1].shape() == Shape{0, 4}, "empty");
            check(!list[2].defined(), "no tensor");
            Object mixed = {{"weights", ones({2})}, {"step", 3}};
            std::vector<Object> all;
            all_gather_object(all, mixed);
            check_equal(all[1].at("weights").get<Tensor>(), ones({2}), "inside an object");
          }) == all_well(2));
}

TEST_CASE("NaN, infinities, large integers and binary survive") {
  REQUIRE(run_ranks(2, [](int) {
            const double infinity = std::numeric_limits<double>::infinity();
            const Object sent = {std::nan(""),
                                 infinity,
                                 -infinity,
                                 std::numeric_limits<std::int64_t>::min(),
                                 std::numeric_limits<std::uint64_t>::max(),
                                 Object::binary({0, 255, 10}),
                                 0.1};
            std::vector<Object> all;
            all_gather_object(all, sent);
            const Object& got = all.at(0);
            check(std::isnan(got[0].get<double>()) && got[1] == infinity && got[2] == -infinity, "floats");
            check(got[3] == sent[3] && got[4] == sent[4] && got[5] == sent[5] && got[6] == 0.1, "the rest");
          }) == all_well(2));
}

TEST_CASE("an object above the limit is refused before memory is taken for it") {
  const auto endings = run_ranks(2, [](int rank) {
    std::vector<Object> list = {rank == 0 ? Object(std::string(5000, 'x')) : Object()};
    broadcast_object_list(list, {.max_bytes = rank == 0 ? kMaxObjectBytes : 100});
  });
  REQUIRE_THAT(endings[1], Catch::Contains("5003 bytes") && Catch::Contains("max_bytes is 100"));
}

TEST_CASE("an object that only claims to be a tensor is an error") {
  Tensor tensor;
  for (const Object& object :
       {Object(3), Object::object(), Object{{"tensorplay.Tensor", 3}},
        Object{{"tensorplay.Tensor",
                {{"dtype", "float32"}, {"shape", {1 << 30, 1 << 30}}, {"data", Object::binary({1})}}}},
        Object{{"tensorplay.Tensor", {{"dtype", "float33"}, {"shape", {1}}, {"data", Object::binary({1})}}}},
        Object{{"tensorplay.Tensor", {{"dtype", "float32"}, {"shape", {-1}}, {"data", Object::binary({})}}}}}) {
    REQUIRE_THROWS_AS(from_json(object, tensor), DistBackendError);
  }
}

TEST_CASE("an object of another type than the receiver's is an error of the receiver") {
  const auto endings = run_ranks(2, [](int rank) {
    std::vector<Object> list = {Object("text")};
    if (rank == 0) {
      broadcast_object_list(list);
    } else {
      std::vector<Point> points(1);
      broadcast_object_list(points);
    }
  });
  REQUIRE(endings[0].empty());
  REQUIRE_THAT(endings[1], Catch::Contains("another type"));
}
