// Communicates over the backend that it is told, which may come from a plug-in: TP_BACKEND_PLUGINS, or the path given
// as the second argument.
#include <iostream>
#include <string>

#include <tensorplay/distributed.hpp>

namespace dist = tensorplay::distributed;

int main(int argc, char** argv) {
  return dist::elastic::record([&] {
    if (argc > 2) dist::load_backend_plugin(argv[2]);
    dist::init_process_group(std::string(argc > 1 ? argv[1] : "relay"));
    auto sum = tensorplay::full({3}, dist::get_rank() + 1);
    dist::all_reduce(sum);
    if (dist::get_rank() == 0) std::cout << dist::get_backend_config() << " sum: " << sum << std::endl;
    dist::destroy_process_group();
    return 0;
  });
}
