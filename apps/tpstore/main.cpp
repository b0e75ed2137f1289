#include "apps/tpstore/arguments.hpp"
#include "apps/tpstore/commands.hpp"
#include "apps/tpstore/help.hpp"
#include "apps/tpstore/listing.hpp"
#include "apps/tpstore/serve.hpp"
#include "runtime/base/log.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <cstdio>
#include <exception>
#include <utility>

namespace {

using namespace tensorplay::distributed;

int complain(int code, const char* text) {
  std::fflush(stdout);
  std::fprintf(stderr, "tpstore: %s\n", text);
  return code;
}

int run(const tpstore::Arguments& arguments) {
  if (arguments.command == "serve") return tpstore::run_serve(arguments);
  if (arguments.command == "list") return tpstore::run_list(arguments);
  if (arguments.command == "dump") return tpstore::run_dump(arguments);
  return tpstore::run_command(arguments);
}

}  // namespace

int main(int argc, char** argv) {
  namespace exit_code = tpstore::exit_code;
  try {
    tensorplay::base::log::Options log_options;
    log_options.program = "tpstore";
    tensorplay::base::log::configure(std::move(log_options));
    const auto arguments = tpstore::parse_arguments({argv + 1, argv + argc});
    if (arguments.wants_version) {
      std::puts("tpstore " TP_VERSION);
      return exit_code::kSuccess;
    }
    if (arguments.wants_help) {
      std::fputs(tpstore::help_text(arguments.command).c_str(), stdout);
      return exit_code::kSuccess;
    }
    return run(arguments);
  } catch (const tpstore::UsageError& error) {
    return complain(exit_code::kUsage, error.what());
  } catch (const StoreTimeoutError& error) {
    return complain(exit_code::kTimedOut, error.what());
  } catch (const DistNetworkError& error) {
    return complain(exit_code::kUnreachable, error.what());
  } catch (const DistError& error) {
    return complain(exit_code::kRefused, error.what());
  } catch (const std::invalid_argument& error) {
    return complain(exit_code::kUsage, error.what());
  } catch (const std::exception& error) {
    return complain(exit_code::kInternalError, error.what());
  }
}
