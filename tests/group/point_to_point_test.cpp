#include "tensorplay/distributed/point_to_point.hpp"

#include "tests/support/rank_checks.hpp"
#include "tests/support/rank_threads.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <set>

using namespace tensorplay;
using namespace tensorplay::distributed;
using namespace tensorplay::testing;
using namespace std::chrono_literals;

TEST_CASE("a receive from any source says who sent") {
  REQUIRE(run_ranks(4, [](int rank) {
            if (rank != 0) {
              send(full({3}, rank), {.dst = 0, .tag = 5});
              return barrier(), void();
            }
            std::set<int> senders;
            for (int i = 0; i < 3; ++i) {
              Tensor got = zeros({3});
              const int sender = recv(got, {.tag = 5});
              check_equal(got, full({3}, sender), "what the sender sent");
              senders.insert(sender);
            }
            check(senders == std::set<int>{1, 2, 3}, "each once");
            barrier();
          }) == all_well(4));
}

TEST_CASE("an asynchronous receive from any source has the sender in its Work") {
  REQUIRE(run_ranks(2, [](int rank) {
            Tensor mine = full({2}, rank);
            if (rank == 1) {
              isend(mine, {.dst = 0})->wait();
            } else {
              const auto work = irecv(mine);
              work->wait();
              check(work->source_rank() == 1, "source");
              check_equal(mine, ones({2}), "elements");
            }
          }) == all_well(2));
}

TEST_CASE("many transfers are in flight at once, waited for in any order") {
  constexpr int kCount = 200;
  REQUIRE(run_ranks(2, [](int rank) {
            std::vector<Tensor> tensors;
            std::vector<WorkPtr> works;
            for (int i = 0; i < kCount; ++i) {
              tensors.push_back(full({17}, rank == 0 ? i : -1));
              works.push_back(rank == 0 ? isend(tensors.back(), {.dst = 1, .tag = i})
                                        : irecv(tensors.back(), {.src = 0, .tag = i}));
            }
            for (int i = kCount; i-- > 0;) works[static_cast<std::size_t>(i)]->wait();
            for (int i = 0; i < kCount; ++i) {
              const auto k = static_cast<std::size_t>(i);
              check(works[k]->is_completed() && works[k]->is_success(), "complete");
              check_equal(tensors[k], full({17}, i), "elements");
            }
          }) == all_well(2));
}

TEST_CASE("messages of one tag arrive in the order in which they were sent") {
  REQUIRE(run_ranks(2, [](int rank) {
            std::vector<Tensor> tensors;
            std::vector<WorkPtr> works;
            for (int i = 0; i < 50; ++i) {
              tensors.push_back(full({1 + i % 3}, rank == 0 ? i : -1));
              works.push_back(rank == 0 ? isend(tensors.back(), {.dst = 1}) : irecv(tensors.back(), {.src = 0}));
            }
            for (auto& work : works) work->wait();
            for (int i = 0; i < 50; ++i)
              check(tensors[static_cast<std::size_t>(i)].flatten().select(0, 0).item() == i, "order");
          }) == all_well(2));
}

TEST_CASE("the Work of a send or a receive that is dropped still completes") {
  REQUIRE(run_ranks(2, [](int rank) {
            constexpr std::int64_t kLarge = 2'000'000;  // Far more than the sockets hold.
            Tensor large = full({kLarge}, rank == 0 ? 3 : 0);
            Tensor small = full({1}, rank == 0 ? 4 : 0);
            if (rank == 0) {
              isend(large, {.dst = 1, .tag = 1});
              isend(small, {.dst = 1, .tag = 2});
              barrier();
            } else {
              barrier();  // A late receiver.
              const auto future = irecv(large, {.src = 0, .tag = 1})->get_future();
              recv(small, {.src = 0, .tag = 2});
              future->wait();
              check(large.select(0, kLarge - 1).item() == 3 && small.item() == 4, "elements");
            }
            barrier();
          }) == all_well(2));
}

TEST_CASE("the future of a transfer completes without anybody waiting, and goes on in then") {
  REQUIRE(run_ranks(2, [](int rank) {
            Tensor mine = full({4}, rank == 0 ? 9 : 0);
            const auto work = rank == 0 ? isend(mine, {.dst = 1}) : irecv(mine, {.src = 0});
            const auto doubled = work->get_future()->then([](const Future& done) {
              Tensor copy = done.value().at(0).clone();
              copy.mul_(2);
              return Future::Value{copy};
            });
            check(doubled->wait_for(20s), "complete");
            check_equal(doubled->value().at(0), full({4}, 18), "then");
          }) == all_well(2));
}

TEST_CASE("a batch of sends and receives in a ring does not depend on their order") {
  REQUIRE(run_ranks(5, [](int rank) {
            const int next = (rank + 1) % 5;
            const int previous = (rank + 4) % 5;
            const Tensor leaving = full({300'000}, rank);
            Tensor arriving = zeros({300'000});
            // Everybody names the send first; with blocking calls nobody would receive.
            const auto works =
                batch_isend_irecv({P2POp(isend, leaving, {.peer = next}), P2POp(irecv, arriving, {.peer = previous})});
            check(works.size() == 2, "one Work each");
            for (const auto& work : works) work->wait();
            check_equal(arriving, full({300'000}, previous), "arrived");
          }) == all_well(5));
}

TEST_CASE("a batch with one wrong entry starts nothing") {
  REQUIRE(run_ranks(2, [](int rank) {
            Tensor tensor = full({1}, rank);
            Tensor got = zeros({1});
            refused([] { batch_isend_irecv({}); });
            refused([&] { P2POp(isend, tensor, {}); });
            refused([&] {
              batch_isend_irecv({P2POp(isend, tensor, {.peer = 1 - rank}), P2POp(irecv, got, {.peer = rank})});
            });
            const auto other = new_group();
            refused([&] {
              batch_isend_irecv(
                  {P2POp(isend, tensor, {.peer = 1 - rank}), P2POp(irecv, got, {.peer = 1 - rank, .group = other})});
            });
            // Had the first one been sent, this would receive it.
            const auto works = batch_isend_irecv(
                {P2POp(isend, full({1}, rank + 10), {.peer = 1 - rank}), P2POp(irecv, got, {.peer = 1 - rank})});
            for (const auto& work : works) work->wait();
            check(got.item() == 11 - rank, "the second batch's element");
          }) == all_well(2));
}

TEST_CASE("transfers may be given ranks of the group") {
  REQUIRE(run_ranks(3, [](int rank) {
            const auto group = new_group({.ranks = {1, 2}});
            if (rank == 0) return;
            Tensor mine = full({1}, rank);
            if (rank == 1) send(mine, {.group = group, .group_dst = 1});
            if (rank == 2) {
              check(recv(mine, {.group = group, .group_src = 0}) == 1, "the global rank of the sender");
              check(mine.item() == 1, "element");
            }
            refused([&] { isend(mine, {.dst = 1, .group = group, .group_dst = 1}); });
            refused([&] { irecv(mine, {.src = rank, .group = group}); });
            refused([&] { isend(mine, {.dst = 3 - rank, .group = group, .tag = -1}); });
          }) == all_well(3));
}

TEST_CASE("empty tensors and other element types of the same size travel too") {
  REQUIRE(run_ranks(2, [](int rank) {
            if (rank == 0) {
              send(zeros({0}), {.dst = 1});
              send(tensor<float>({1.5F, -2.0F}), {.dst = 1, .tag = 1});
            } else {
              Tensor nothing = zeros({0});
              check(recv(nothing, {.src = 0}) == 0, "sender of nothing");
              Tensor bits = zeros({2}, DType::kInt32);
              recv(bits, {.src = 0, .tag = 1});
              check(bits.data<std::int32_t>()[0] == 0x3fc00000, "bits of 1.5");
            }
          }) == all_well(2));
}
