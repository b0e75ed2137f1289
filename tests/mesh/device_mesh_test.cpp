#include "tensorplay/distributed/device_mesh.hpp"

#include "tensorplay/distributed.hpp"
#include "tensorplay/distributed/groups.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>

using namespace tensorplay;
using namespace tensorplay::distributed;
using tensorplay::testing::all_well;
using tensorplay::testing::run_ranks;
using tensorplay::testing::run_threads;
using Ints = std::vector<int>;
using Names = std::vector<std::string>;

namespace {

void check(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

double sum_over(const Group& group, int rank) {
  const Tensor value = full({1}, rank);
  all_reduce(value, {.group = group});
  return value.item();
}

/// The text of what `act` throws on a rank of a world of four.
std::string refusal(const std::function<void()>& act) {
  return run_ranks(4, [&](int) { act(); }).front();
}

}  // namespace

TEST_CASE("each dimension has a group that communicates") {
  REQUIRE(run_ranks(8, [](int rank) {
            const auto mesh = init_device_mesh("cpu", {2, 4}, {.mesh_dim_names = {"dp", "tp"}});
            check(sum_over(mesh.get_group("tp"), rank) == (rank < 4 ? 6 : 22), "tp");
            check(sum_over(mesh.get_group("dp"), rank) == 2 * (rank % 4) + 4, "dp");
            check(mesh.get_group(0) == mesh.get_group("dp") && mesh.get_group(-1) == mesh.get_group("tp"), "by index");
            check(mesh.get_all_groups().size() == 2, "all groups");
            check(mesh.get_group("dp")->desc() == "mesh_dp", mesh.get_group("dp")->desc());
            check(mesh.get_rank() == rank, "rank");
            check(mesh.get_local_rank("tp") == rank % 4 && mesh.get_local_rank(0) == rank / 4, "local ranks");
            check(mesh.get_coordinate() == Ints{rank / 4, rank % 4}, "coordinate");
            check(mesh.shape() == Ints{2, 4} && mesh.size() == 8 && mesh.size("tp") == 4 && mesh.ndim() == 2, "shape");
            check(equal(mesh.mesh(), arange(8).reshape({2, 4})), "mesh");
            check(to_string(mesh) == "DeviceMesh((dp=2, tp=4), 'cpu', stride=(4, 1))", to_string(mesh));
          }) == all_well(8));
}

TEST_CASE("slicing makes no groups") {
  REQUIRE(run_ranks(8, [](int rank) {
            const auto mesh = init_device_mesh("cpu", {2, 2, 2}, {.mesh_dim_names = {"pp", "dp", "tp"}});
            const int groups = get_pg_count();
            if (rank == 5) {  // Alone: nobody else has to take part.
              const auto tp = mesh["tp"];
              check(tp.get_group() == mesh.get_group("tp"), "the same group");
              check(equal(tp.mesh(), tensor<std::int64_t>({4, 5})), "this rank's row");
              const auto two = mesh[{"pp", "tp"}];
              check(equal(two.mesh(), tensor<std::int64_t>({0, 1, 4, 5}).reshape({2, 2})), "two dimensions");
              check(two.get_coordinate() == Ints{1, 1} && two.get_local_rank("tp") == 1, "place");
              check(two["tp"].get_group() == mesh.get_group("tp"), "a slice of a slice");
              check(mesh[{"pp", "dp", "tp"}] == mesh, "all of it");
            }
            check(get_pg_count() == groups, "no new group");
            barrier();
          }) == all_well(8));
}

TEST_CASE("flattening makes one dimension of several, once") {
  REQUIRE(run_ranks(8, [](int rank) {
            const auto mesh = init_device_mesh("cpu", {2, 2, 2}, {.mesh_dim_names = {"pp", "dp", "tp"}});
            const auto outer = mesh[{"pp", "tp"}].flatten();
            check(outer.mesh_dim_names() == Names{"pp_tp"} && outer.shape() == Ints{4}, "name and shape");
            const int row = (rank / 2) % 2 * 2;
            check(sum_over(outer.get_group(), rank) == 4 * row + 0 + 1 + 4 + 5, "sum");
            check(outer.get_local_rank() == rank / 4 * 2 + rank % 2, "local rank");
            const int groups = get_pg_count();
            check(mesh[{"pp", "tp"}].flatten("pp_tp").get_group() == outer.get_group(), "cached");
            check(mesh["pp_tp"].get_group() == outer.get_group(), "sliced by its name");
            check(get_pg_count() == groups, "no new group");
            check(mesh.flatten("all").get_group() == get_default_group(), "the whole world is the default group");
            check(mesh["dp"].flatten("dp").get_group() == mesh.get_group("dp"), "itself");
          }) == all_well(8));
}

TEST_CASE("dimensions of size one are dimensions like others") {
  REQUIRE(run_ranks(2, [](int rank) {
            const auto mesh = init_device_mesh("cpu", {1, 2, 1}, {.mesh_dim_names = {"a", "b", "c"}});
            check(sum_over(mesh.get_group("a"), rank) == rank, "alone");
            check(sum_over(mesh.get_group("b"), rank) == 1, "both");
            check(mesh[{"a", "b"}].flatten("ab").get_group()->size() == 2, "flattened");
            check(mesh["ab"].get_local_rank() == rank, "sliced by the flattened name");
          }) == all_well(2));
}

TEST_CASE("a mesh of some ranks leaves the others without a coordinate") {
  REQUIRE(run_ranks(4, [](int rank) {
            const DeviceMesh mesh("cpu", tensor<std::int64_t>({3, 1}), {.mesh_dim_names = {"x"}});
            check(mesh.get_coordinate().has_value() == (rank % 2 == 1), "coordinate");
            if (rank % 2 == 1) {
              check(mesh.get_local_rank() == (rank == 3 ? 0 : 1), "place in the mesh");
              check(mesh.get_group()->rank() == (rank == 1 ? 0 : 1), "groups are sorted");
            } else {
              try {
                mesh.get_group();
                check(false, "an outsider has no group");
              } catch (const InvalidArgument&) {
              }
            }
            const DeviceMesh kept("cpu", tensor<std::int64_t>({3, 1}),
                                  {.mesh_dim_names = {"x"}, .preserve_rank_order = true});
            if (rank % 2 == 1) check(kept.get_group()->rank() == (rank == 3 ? 0 : 1), "the order is kept");
          }) == all_well(4));
}

TEST_CASE("a mesh can be made around groups that exist, and of ranks that are not initialised") {
  REQUIRE(run_ranks(4, [](int rank) {
            const auto rows = new_subgroups_by_enumeration({.ranks_per_subgroup_list = {{0, 1}, {2, 3}}});
            const auto columns = new_subgroups_by_enumeration({.ranks_per_subgroup_list = {{0, 2}, {1, 3}}});
            const auto mesh = DeviceMesh::from_group({columns.first, rows.first}, "cpu", arange(4).reshape({2, 2}),
                                                     {.mesh_dim_names = {"dp", "tp"}});
            check(mesh.get_group("tp") == rows.first && mesh.get_coordinate() == Ints{rank / 2, rank % 2}, "two");
            const auto line = DeviceMesh::from_group(rows.first, "cpu");
            check(line.get_group() == rows.first && line.get_local_rank() == rank % 2, "one");
            try {
              DeviceMesh::from_group({rows.first, columns.first}, "cpu", arange(4).reshape({2, 2}),
                                     {.mesh_dim_names = {"dp", "tp"}});
              check(false, "groups that do not fit the mesh");
            } catch (const InvalidArgument& error) {
              check(std::string(error.what()).starts_with("Invalid mesh"), error.what());
            }
          }) == all_well(4));
}

TEST_CASE("ranks that share a host know it") {
  REQUIRE(run_ranks(4, [](int) {
            const auto mesh = init_device_mesh("cpu", {2, 2}, {.mesh_dim_names = {"nodes", "local"}});
            check(mesh.is_within_host("local"), "one machine");
          }) == all_well(4));
}

TEST_CASE("another backend for a dimension, by name or index") {
  REQUIRE(run_ranks(4, [](int) {
            const auto mesh =
                init_device_mesh("cpu", {2, 2}, {.mesh_dim_names = {"dp", "tp"}, .backend_override = {{"1", "fake"}}});
            check(get_backend(mesh.get_group("tp")) == "fake", get_backend(mesh.get_group("tp")));
            check(get_backend_config(mesh.get_group("dp")) == "cpu:gloo", "the other one");
          }) == all_well(4));
}

TEST_CASE("mistakes are told in torch's words") {
  const auto named = DeviceMeshOptions{.mesh_dim_names = {"dp", "tp"}};
  REQUIRE(refusal([] {
            init_device_mesh("cpu", {2, 2}, {.mesh_dim_names = {"dp", "dp"}});
          }) == "Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names (dp, dp)");
  REQUIRE_THAT(refusal([] {
                 init_device_mesh("cpu", {4}, {.mesh_dim_names = {"dp", "tp"}});
               }),
               Catch::Contains("Found len(mesh_dim_names): 2 and len(mesh_shape):1."));
  REQUIRE_THAT(refusal([] { init_device_mesh("cuda:0", {4}); }),
               Catch::Contains("Device type with index is not supported but got cuda:0."));
  REQUIRE(refusal([] {
            init_device_mesh("cpu", {2, 4});
          }) == "Mesh should not be bigger than default world size 4, but found 8 ranks!");
  REQUIRE(refusal([] {
            init_device_mesh("cpu", {2, 2})["dp"];
          }) == "Cannot slice a DeviceMesh without mesh_dim_names!");
  REQUIRE(refusal([&] {
            init_device_mesh("cpu", {2, 2}, named)["pp"];
          }) == "Invalid mesh_dim_names (pp,) specified. Valid mesh_dim_names are (dp, tp).");
  REQUIRE(refusal([&] {
            init_device_mesh("cpu", {2, 2}, named)[{"tp", "dp"}];
          }) == "Invalid mesh_dim_names (tp, dp) specified. Mesh dim indices should be in ascending order.");
  REQUIRE_THAT(refusal([&] {
                 init_device_mesh("cpu", {2, 2}, named)[{"dp", "dp"}];
               }),
               Catch::Contains("Slicing overlapping dim_names"));
  REQUIRE_THAT(refusal([&] {
                 init_device_mesh("cpu", {2, 2}, named).get_group();
               }),
               Catch::Contains("Found the DeviceMesh have 2 dimensions"));
  REQUIRE_THAT(refusal([&] {
                 init_device_mesh("cpu", {2, 2}, named).get_group("pp");
               }),
               Catch::Contains("Mesh dimension 'pp' does not exist."));
  REQUIRE_THAT(refusal([&] {
                 init_device_mesh("cpu", {2, 2}, named)["dp"].flatten("tp");
               }),
               Catch::Contains("tp already exists for submesh of the DeviceMesh((dp=2, tp=2)"));
  REQUIRE_THAT(refusal([] {
                 init_device_mesh("cpu", {4}, {.backend_override = {{"1", "gloo"}}});
               }),
               Catch::Contains("Found invalid keys in backend_override: got [1], expected integers in range [0, 1)"));
  REQUIRE_THAT(
      refusal([] {
        init_device_mesh("cpu", {4}, {.mesh_dim_names = {"dp"}, .backend_override = {{"0", "gloo"}, {"dp", "gloo"}}});
      }),
      Catch::Contains("Found redundant dim index 0 and name dp in backend_override"));
  REQUIRE_THAT(refusal([] {
                 DeviceMesh("cpu", tensor<std::int64_t>({0, 1, 1, 2}));
               }),
               Catch::Contains("rank 1 occurs twice"));
  REQUIRE_THAT(refusal([&] {
                 init_device_mesh("cpu", {2, 2}, named)["dp"].abort();
               }),
               Catch::Contains("abort() is not supported on a submesh."));
}

TEST_CASE("ranks that describe different meshes are told so instead of hanging") {
  const auto endings = run_ranks(4, [](int rank) { init_device_mesh("cpu", rank == 2 ? Ints{4, 1} : Ints{2, 2}); });
  for (const auto& text : endings) {
    REQUIRE_THAT(text, Catch::Contains("rank 2 describes another mesh than rank 0"));
  }
}
