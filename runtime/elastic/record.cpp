#include "runtime/base/environment.hpp"
#include "runtime/elastic/crash_handler.hpp"
#include "runtime/elastic/error_file.hpp"
#include "runtime/elastic/throw_log.hpp"
#include "tensorplay/distributed/elastic.hpp"

#include <cstdio>
#include <exception>
#include <unistd.h>

namespace tensorplay::distributed::elastic {
namespace {

constexpr int kFailure = 1;

void print_failure(const Thrown& thrown) {
  std::string line;
  if (const auto rank = base::env_value(base::env::kRank)) line.append("[rank").append(*rank).append("]: ");
  line.append(thrown.type);
  if (!thrown.text.empty()) line.append(": ").append(thrown.text);
  line.append("\n");
  std::fputs(line.c_str(), stderr);
}

}  // namespace

int record(const std::function<int()>& main) {
  const auto path = error_file_path();
  const CrashHandler crash_handler(path);
  try {
    const int code = main();
    // An exception that was dealt with may have left its words on the way.
    if (code == 0 && !path.empty()) ::unlink(path.c_str());
    return code;
  } catch (...) {
    const Thrown thrown = describe(std::current_exception());
    if (!path.empty()) write_error_file(path, error_file_text(thrown, ""));
    print_failure(thrown);
    return kFailure;
  }
}

int record(int (*main)(int, char**), int argc, char** argv) {
  return record([=] { return main(argc, argv); });
}

}  // namespace tensorplay::distributed::elastic
