/// One rank under mpirun: the operation matrix, the capability table, groups, objects, and a second initialisation.
#include "tests/support/capability_walk.hpp"
#include "tests/support/operation_matrix.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>

using namespace tensorplay;
using namespace tensorplay::distributed;
using namespace tensorplay::testing;

namespace {

void walk() {
  const int rank = get_rank();
  const int size = get_world_size();
  check(get_backend() == "mpi" && get_backend_config() == "cpu:mpi", "backend");
  run_operation_matrix();
  run_refusals();
  if (size < 2) return;
  walk_capabilities("mpi");

  const auto first_two = new_group({.ranks = {0, 1}});
  Tensor sum = full({2}, rank + 1);
  all_reduce(sum, {.group = first_two});
  check_equal(sum, full({2}, rank < 2 ? 3 : rank + 1), "a group of two");

  std::vector<Object> all;
  all_gather_object(all, Object{{"rank", rank}});
  check(all.back() == Object{{"rank", size - 1}}, "objects");

  std::vector<WorkPtr> works;
  std::vector<Tensor> tensors;
  for (int i = 0; i < 20; ++i) {
    tensors.push_back(full({100}, rank));
    works.push_back(all_reduce(tensors.back(), {.async_op = true}));
  }
  for (const auto& work : works) work->wait();
  check_equal(tensors.back(), full({100}, size * (size - 1) / 2), "many in flight");

  if (rank == 1) {  // Nobody answers: the deadline holds, and the group of two is given up.
    const auto text =
        error_of([&] { recv(sum, {.src = 0, .group = first_two, .timeout = std::chrono::milliseconds(200)}); });
    check(text.find("timed out after 200 ms") != std::string::npos, text);
  }
  barrier();
}

}  // namespace

int main() {
  try {
    init_process_group("mpi");
    walk();
    const int rank = get_rank();
    destroy_process_group();

    init_process_group("mpi");  // Again, in the debug level DETAIL.
    set_debug_level(DebugLevel::DETAIL);
    const auto checked = new_group();
    if (get_world_size() > 1) {
      const auto text = error_of([&] { all_reduce(ones({1 + rank}), {.group = checked}); });
      check(text.find("rank 1 calls all_reduce of 2 float32") != std::string::npos, text);
    }
    destroy_process_group();
    if (rank == 0) std::cout << "all is well on the mpi backend" << std::endl;
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi_rank: %s\n", error.what());
    return 1;
  }
}
