#include "tensorplay/distributed/groups.hpp"

#include "tensorplay/distributed.hpp"
#include "tests/support/rank_checks.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>

using namespace tensorplay;
using namespace tensorplay::distributed;
using namespace std::chrono_literals;
using tensorplay::testing::all_well;
using tensorplay::testing::check;
using tensorplay::testing::check_equal;
using tensorplay::testing::refused;
using tensorplay::testing::run_ranks;

namespace {

/// The sum of the members' global ranks, by the group itself.
double sum_of_ranks(const Group& group) {
  Tensor sum = full({1}, get_rank());
  all_reduce(sum, {.group = group});
  return sum.item();
}

}  // namespace

TEST_CASE("a group of some ranks communicates among its members, who know its ranks") {
  REQUIRE(run_ranks(4, [](int rank) {
            const auto odd = new_group({.ranks = {3, 1}});
            if (rank % 2 == 0) {
              check(odd == GroupMember::NON_GROUP_MEMBER, "no member");
              check(get_rank(odd) == -1 && get_world_size(odd) == -1, "rank of a non-member");
              return;
            }
            check(get_process_group_ranks(odd) == std::vector<int>{1, 3}, "sorted");
            check(get_rank(odd) == rank / 2 && get_world_size(odd) == 2, "rank");
            check(get_group_rank(odd, 3) == 1 && get_global_rank(odd, 0) == 1, "ranks");
            check(get_backend_impl(odd).name() == "gloo" && get_backend_impl(odd).rank() == get_rank(odd), "backend");
            refused([&] { get_backend_impl(odd, Device(DeviceType::kCUDA)); });
            check(get_backend(odd) == "gloo" && get_backend_config(odd) == "cpu:gloo", "backend");
            check(sum_of_ranks(odd) == 4, "sum");
            refused([&] { get_group_rank(odd, 0); });
            refused([&] { get_global_rank(odd, 2); });
            Tensor mine = full({1}, rank);
            broadcast(mine, {.src = 3, .group = odd});
            check(mine.item() == 3, "broadcast from a global rank");
          }) == all_well(4));
}

TEST_CASE("a non-member's calls have no effect and return nothing") {
  REQUIRE(run_ranks(2, [](int rank) {
            const auto only = new_group({.ranks = {0}});
            if (rank == 0) return;
            Tensor mine = ones({2});
            check(all_reduce(mine, {.group = only, .async_op = true}) == nullptr, "all_reduce");
            check(broadcast(mine, {.src = 5, .group = only}) == nullptr, "broadcast");
            check(barrier({.group = only}) == nullptr, "barrier");
            check(recv(mine, {.src = 0, .group = only}) == -1, "recv");
            check(isend(mine, {.dst = 0, .group = only}) == nullptr, "isend");
            monitored_barrier({.group = only});
            check_equal(mine, ones({2}), "untouched");
            destroy_process_group(only);
            check(is_initialized(), "the world is still there");
            refused([&] { get_backend(only); });
            check(get_process_group_ranks(only).empty(), "no ranks");
          }) == all_well(2));
}

TEST_CASE("GroupMember::WORLD stands for the default group") {
  REQUIRE(run_ranks(2, [](int rank) {
            check(get_rank(GroupMember::WORLD) == rank, "rank");
            check(sum_of_ranks(GroupMember::WORLD) == 1, "sum");
            check(get_process_group_ranks(GroupMember::WORLD) == std::vector<int>{0, 1}, "ranks");
            destroy_process_group(GroupMember::WORLD);
            check(!is_initialized(), "ended");
            init_process_group(
                {.backend = "fake", .world_size = 2, .rank = rank, .store = std::make_shared<HashStore>()});
          }) == all_well(2));
}

TEST_CASE("lists of ranks that do not fit are refused before anybody waits") {
  REQUIRE(run_ranks(2, [](int) {
            refused([] { new_group({.ranks = {0, 2}}); });
            refused([] { new_group({.ranks = {0, 0}}); });
            refused([] { new_group({.ranks = {-1}}); });
            refused([] { new_group({.timeout = 0ms}); });
            refused([] { new_group({.backend = "glo"}); });
            refused([] { new_subgroups({.group_size = 3}); });
            refused([] { new_subgroups({.group_size = -1}); });
            refused([] { new_subgroups_by_enumeration({}); });
            refused([] { new_subgroups_by_enumeration({.ranks_per_subgroup_list = {{0, 1}, {1}}}); });
            refused([] { split_group({}); });
            refused([] { split_group({.split_ranks = {{0}, {}}}); });
            refused([] { split_group({.split_ranks = {{0, 1}, {1}}}); });
            refused([] { split_group({.split_ranks = {{0, 1}}, .backend = "fake"}); });
            refused([] { shrink_group({}); });
            refused([] { shrink_group({.ranks_to_exclude = {get_rank()}}); });
            refused([] { shrink_group({.ranks_to_exclude = {1 - get_rank()}, .shrink_flags = 7}); });
            check(sum_of_ranks({}) == 1, "the world works");
            check(sum_of_ranks(new_group()) == 1, "and so does the next group");
          }) == all_well(2));
}

TEST_CASE("a group keeps the order of its list when asked to") {
  REQUIRE(run_ranks(3, [](int rank) {
            const auto turned = new_group({.ranks = {2, 0, 1}, .sort_ranks = false});
            check(get_rank(turned) == (rank + 1) % 3, "rank");
            Tensor mine = full({1}, rank);
            broadcast(mine, {.group = turned, .group_src = 0});
            check(mine.item() == 2, "the first of the list");
          }) == all_well(3));
}

TEST_CASE("a group made by its members alone does not disturb the next one") {
  REQUIRE(run_ranks(4, [](int rank) {
            if (rank < 2) {
              for (int i = 0; i < 3; ++i) {
                const auto pair = new_group({.ranks = {0, 1}, .use_local_synchronization = true});
                check(sum_of_ranks(pair) == 1, "pair");
              }
            }
            check(sum_of_ranks(new_group({.ranks = {0, 1, 2, 3}})) == 6, "all");
          }) == all_well(4));
}

TEST_CASE("a group inherits the timeout and the backend, or has its own") {
  REQUIRE(run_ranks(
              2,
              [](int) {
                check(new_group()->timeout() == 7s, "inherited");
                const auto own = new_group({.timeout = 9s, .group_desc = "mine"});
                check(own->timeout() == 9s && own->desc() == "mine", "own");
                set_timeout(11s, own);
                check(own->timeout() == 11s && own->backend_for(DeviceType::kCPU).timeout() == 11s, "changed");
                refused([] { new_group({.timeout = -1ms}); });
              },
              7s) == all_well(2));
}

TEST_CASE("subgroups of one size are consecutive ranks") {
  REQUIRE(run_ranks(4, [](int rank) {
            const auto [mine, all] = new_subgroups({.group_size = 2});
            check(all.size() == 2 && all[static_cast<std::size_t>(rank / 2)] == mine, "mine is among them");
            check(all[static_cast<std::size_t>(1 - rank / 2)] == GroupMember::NON_GROUP_MEMBER, "the other is not");
            check(sum_of_ranks(mine) == (rank < 2 ? 1 : 5), "sum");
            // A part of a part, by its members alone.
            if (rank >= 2) {
              const auto [one, ones] = new_subgroups({.group_size = 1, .group = mine});
              check(get_process_group_ranks(one) == std::vector<int>{rank}, "one");
            }
            check(sum_of_ranks(new_group()) == 6, "the next group");
          }) == all_well(4));
}

TEST_CASE("subgroups may be enumerated, and ranks left out") {
  REQUIRE(run_ranks(4, [](int rank) {
            const auto [mine, all] = new_subgroups_by_enumeration({.ranks_per_subgroup_list = {{0, 3}, {2}}});
            check(all.size() == 2, "all");
            if (rank == 1) {
              check(mine == GroupMember::NON_GROUP_MEMBER, "left out");
            } else {
              check(sum_of_ranks(mine) == (rank == 2 ? 2 : 3), "sum");
            }
          }) == all_well(4));
}

TEST_CASE("a group is split by its members, in ranks of the parent") {
  REQUIRE(
      run_ranks(5, [](int rank) {
        const auto parent = new_group({.ranks = {1, 2, 3, 4}});
        const auto part = split_group({.parent_pg = parent, .split_ranks = {{0, 1}, {3}}});
        if (rank == 0 || rank == 3) {
          check(part == GroupMember::NON_GROUP_MEMBER, "in no part");
        } else {
          check(sum_of_ranks(part) == (rank == 4 ? 4 : 3), "sum");
        }
        if (rank != 0) {
          const auto again = split_group({.parent_pg = parent, .split_ranks = {{0, 1, 2, 3}}, .backend = "cpu:gloo"});
          check(sum_of_ranks(again) == 10, "again");
        }
        check(sum_of_ranks({}) == 10, "world");
      }) == all_well(5));
}

TEST_CASE("the survivors of a dead rank shrink the default group and go on") {
  const auto endings = run_ranks(4, [](int rank) {
    const auto other = new_group();
    if (rank == 1) throw std::runtime_error("rank 1 dies");
    try {
      barrier();
      throw std::runtime_error("the barrier ended well");
    } catch (const DistBackendError&) {
    }
    const auto left = shrink_group({.ranks_to_exclude = {1}, .shrink_flags = SHRINK_ABORT});
    check(get_world_size() == 3 && get_rank() == (rank == 0 ? 0 : rank - 1), "ranks are counted anew");
    check(left == get_default_group() && get_pg_count() == 1, "the only group");
    check(sum_of_ranks({}) == 3, "sum");
    check(sum_of_ranks(new_group({.ranks = {0, 2}, .use_local_synchronization = get_rank() != 1})) >= 0, "new group");
  });
  REQUIRE(endings == tensorplay::testing::Endings{"", "rank 1 dies", "", ""});
}

TEST_CASE("a group that is not the default one keeps global ranks when it shrinks") {
  REQUIRE(run_ranks(4, [](int rank) {
            const auto group = new_group({.ranks = {1, 2, 3}});
            if (rank == 0 || rank == 2) return barrier(), void();
            const auto left = shrink_group({.ranks_to_exclude = {1}, .group = group});
            check(get_process_group_ranks(left) == std::vector<int>{1, 3}, "ranks");
            check(sum_of_ranks(left) == 4, "sum");
            refused([&] { destroy_process_group(group); });
            barrier();
          }) == all_well(4));
}

TEST_CASE("one group is destroyed alone, all of them with the default one") {
  REQUIRE(run_ranks(2, [](int) {
            const auto first = new_group();
            const auto second = new_group();
            check(get_pg_count() == 3 && all_groups().size() == 3, "three");
            destroy_process_group(first);
            check(get_pg_count() == 2, "two");
            refused([&] { destroy_process_group(first); });
            check(sum_of_ranks(second) == 1, "the other works");
            bool failed = false;
            try {
              barrier({.group = first});
            } catch (const DistBackendError&) {
              failed = true;
            }
            check(failed, "a destroyed group works no more");
          }) == all_well(2));
}

TEST_CASE("members who never come to a new group are named") {
  const auto endings = run_ranks(3, [](int rank) {
    if (rank != 1) new_group({.ranks = {0, 1}, .timeout = 300ms});
  });
  REQUIRE_THAT(endings[0], Catch::Contains("new_group 1") && Catch::Contains("rank 1 never came"));
  REQUIRE(endings[2].empty());
}

TEST_CASE("the group's store is the user's, apart from every other group's") {
  REQUIRE(run_ranks(2, [](int rank) {
            const auto group = new_group();
            group->store()->set("key", "of the group");
            get_default_group()->store()->set("key", "of the world");
            barrier();
            check(group->store()->get("key") == "of the group", "group");
            check(get_default_group()->store()->get("key") == "of the world", "world");
            group->store()->add("count", rank + 1);
            barrier();
            check(group->store()->add("count", 0) == 3, "counter");
          }) == all_well(2));
}

TEST_CASE("what this build and this process are can be asked") {
  REQUIRE(is_available());
  REQUIRE(is_gloo_available());
  REQUIRE(is_backend_available("fake"));
  REQUIRE_FALSE(is_backend_available("ucc"));
  REQUIRE_FALSE(is_ucc_available());
  REQUIRE(is_mpi_available() == is_backend_available("mpi"));
  REQUIRE(is_nccl_available() == is_backend_available("nccl"));
  REQUIRE(is_xccl_available() == is_backend_available("xccl"));
  REQUIRE(get_default_backend_for_device(DeviceType::kCPU) == "gloo");
  REQUIRE(is_torchelastic_launched() == (std::getenv("TORCHELASTIC_RUN_ID") != nullptr));
  REQUIRE_THROWS_WITH(get_default_group(), Catch::Contains("init_process_group"));
  ::unsetenv("LOCAL_RANK");
  REQUIRE(get_node_local_rank(4) == 4);
  REQUIRE_THROWS_WITH(get_node_local_rank(), Catch::Contains("LOCAL_RANK"));
  ::setenv("LOCAL_RANK", "3", 1);
  REQUIRE(get_node_local_rank() == 3);
  ::unsetenv("LOCAL_RANK");
}
