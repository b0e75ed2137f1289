/// Tries every operation that the capability table lists, on a backend in the default group of two ranks or more.
#pragma once

#include "tests/support/rank_checks.hpp"

#include <set>
#include <string>
#include <vector>

namespace tensorplay::testing {

/// Carries out one operation and checks what came of it.
inline void exercise(distributed::OpType type) {
  using namespace tensorplay::distributed;
  const int rank = get_rank();
  const int size = get_world_size();
  const auto count = static_cast<std::size_t>(size);
  const double sum = size * (size + 1) / 2.0;
  const Tensor mine = full({2}, rank + 1);
  std::vector<Tensor> outputs;
  for (int r = 0; r < size; ++r) outputs.push_back(zeros({2}));
  const std::vector<Tensor> inputs(count, mine);
  Tensor got = zeros({2});
  switch (type) {
    case OpType::BROADCAST:
      broadcast(mine, {.src = 1});
      return check_equal(mine, full({2}, 2), "broadcast");
    case OpType::ALLREDUCE:
      all_reduce(mine);
      return check_equal(mine, full({2}, sum), "all_reduce");
    case OpType::ALLREDUCE_COALESCED:
      all_reduce_coalesced({mine, got});
      return check_equal(mine, full({2}, sum), "all_reduce_coalesced");
    case OpType::REDUCE:
      reduce(mine, {.dst = 1});
      return check_equal(mine, full({2}, rank == 1 ? sum : rank + 1), "reduce");
    case OpType::ALLGATHER:
      all_gather(outputs, mine);
      return check_equal(outputs.back(), full({2}, size), "all_gather");
    case OpType::ALLGATHER_SINGLE: {
      const Tensor whole = zeros({2 * size});
      all_gather_single(whole, mine);
      return check_equal(whole.slice(0, 2 * size - 2, 2 * size), full({2}, size), "all_gather_single");
    }
    case OpType::GATHER:
      gather(mine, rank == 0 ? outputs : std::vector<Tensor>{});
      return check_equal(outputs.back(), full({2}, rank == 0 ? size : 0), "gather");
    case OpType::SCATTER:
      scatter(got, rank == 1 ? inputs : std::vector<Tensor>{}, {.src = 1});
      return check_equal(got, full({2}, 2), "scatter");
    case OpType::REDUCE_SCATTER:
      reduce_scatter(got, inputs);
      return check_equal(got, full({2}, sum), "reduce_scatter");
    case OpType::REDUCE_SCATTER_SINGLE:
      reduce_scatter_single(got, full({2 * size}, rank + 1));
      return check_equal(got, full({2}, sum), "reduce_scatter_single");
    case OpType::ALLTOALL:
      all_to_all(outputs, inputs);
      return check_equal(outputs.back(), full({2}, size), "all_to_all");
    case OpType::ALLTOALL_SINGLE: {
      const Tensor whole = zeros({size});
      all_to_all_single(whole, full({size}, rank + 1));
      return check(whole.select(0, size - 1).item() == size, "all_to_all_single");
    }
    case OpType::SEND:
    case OpType::RECV:
      if (rank == 0) send(mine, {.dst = 1});
      if (rank == 1) check(recv(got, {.src = 0}) == 0, "sender");
      return check_equal(got, full({2}, rank == 1 ? 1 : 0), "send and recv");
    case OpType::RECVANYSOURCE:
      if (rank == 1) check(recv(got, {.tag = 4}) == 0, "sender");
      if (rank == 0) send(mine, {.dst = 1, .tag = 4});
      return check_equal(got, full({2}, rank == 1 ? 1 : 0), "recv from any source");
    case OpType::BARRIER:
      barrier();
      return;
    case OpType::MONITORED_BARRIER:
      monitored_barrier();
      return;
  }
}

/// Every yes works; every no is a NotImplementedError on each rank that calls, and the group stays usable.
inline void walk_capabilities(const std::string& backend) {
  using namespace tensorplay::distributed;
  const auto operations = backend_traits(backend).operations;
  for (const auto type : all_op_types()) {
    if (operations.contains(type)) {
      exercise(type);
      continue;
    }
    if (type == OpType::RECVANYSOURCE && get_rank() != 1) continue;  // Its sender can, and would wait.
    const auto text = error_of<NotImplementedError>([&] { exercise(type); });
    check(text.find("backend " + backend + " does not support") != std::string::npos, text);
  }
  barrier();
}

}  // namespace tensorplay::testing
