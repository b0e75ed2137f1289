#include <iostream>

#include <tensorplay/distributed.hpp>

namespace dist = tensorplay::distributed;

int run() {
  dist::init_process_group({.backend = "gloo"});
  auto sum = tensorplay::full({4}, dist::get_rank() + 1);
  dist::all_reduce(sum);
  if (dist::get_rank() == 0) std::cout << "sum over " << dist::get_world_size() << " ranks: " << sum << std::endl;
  dist::destroy_process_group();
  return 0;
}

int main() {
  return dist::elastic::record(run);
}
