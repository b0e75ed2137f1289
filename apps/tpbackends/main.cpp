/// tpbackends: prints which backend of this build, and of plug-ins, can do what.
#include "tensorplay/distributed/backend.hpp"

#include <exception>
#include <iostream>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view kHelp = R"(usage: tpbackends [PLUGIN...]

Prints a table of the operations that each backend of libtensorplay_distributed can do. PLUGIN is a shared object with
backends of a third party; those that TP_BACKEND_PLUGINS lists are in the table too.

  -h, --help     this text
  --version      the version

exit codes: 0 printed, 2 wrong arguments or a plug-in that cannot be loaded
)";

}  // namespace

int main(int argc, char** argv) {
  using namespace tensorplay::distributed;
  try {
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      if (argument == "-h" || argument == "--help") {
        std::cout << kHelp;
        return 0;
      }
      if (argument == "--version") {
        std::cout << "tpbackends " << TP_VERSION << '\n';
        return 0;
      }
      if (argument.starts_with("-")) {
        std::cerr << "tpbackends: " << argument << ": no such option; see --help\n";
        return 2;
      }
      load_backend_plugin(argument);
    }
    std::cout << capability_table();
    return std::cout.flush() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "tpbackends: " << error.what() << '\n';
    return 2;
  }
}
