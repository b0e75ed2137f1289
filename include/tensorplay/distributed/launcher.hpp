/// tprun from within a program: launcher::elastic_launch.
///
///     launcher::elastic_launch launch({.nproc_per_node = 4, .max_restarts = 3});
///     launch(train, std::string("corpus.txt"));     // void train(const std::string& corpus), on four ranks
///     launch.program("python3", {"train.py"});      // or any program
///
/// Runs the tprun that is installed beside this library or program, so all that tprun promises holds here too.
/// Source: torch.distributed.launcher.
#pragma once

#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/export.hpp"
#include "tensorplay/multiprocessing.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tensorplay::distributed::launcher {

/// tprun's options by torch's names; what is empty is left to tprun's own default.
struct LaunchConfig {
  int min_nodes = 1;
  int max_nodes = 1;
  int nproc_per_node = 1;
  std::string run_id = {};
  std::string role = {};
  std::string rdzv_backend = {};
  std::string rdzv_endpoint = {};
  std::map<std::string, std::string> rdzv_configs = {};
  int max_restarts = 3;
  std::string local_addr = {};
  std::string log_dir = {};
  std::string redirects = {};  ///< "3", "0:1,1:2"
  std::string tee = {};
  std::string log_line_prefix_template = {};
  std::string signals_to_handle = {};
  std::vector<std::string> options = {};  ///< Any other of tprun's options, as on its command line.
  std::string tprun = {};                 ///< The binary; empty: found beside this program, the library, or in PATH.
};

/// The job failed: what failed first in the whole world.
class TP_API ChildFailedError : public DistError {
 public:
  struct Failure {
    int rank = -1;
    std::string host = {};
    int pid = -1;
    std::string ended = {};    ///< "ended with exit code 3", "died of SIGSEGV"
    std::string message = {};  ///< What the worker said of it; may be empty.
  };
  ChildFailedError(const std::string& text, int code, Failure failure)
      : DistError(text), exit_code(code), root_cause(std::move(failure)) {}

  int exit_code;  ///< tprun's, as docs/exit-codes.md has it.
  Failure root_cause;
};

/// Blocks until the job has ended. Throws ChildFailedError when it failed; DistError when tprun is not there or refused
/// the configuration (its own line has told why on stderr). tprun and its workers share this process's terminal, and
/// end when it dies.
class TP_API elastic_launch {
 public:
  explicit elastic_launch(LaunchConfig config) : config_(std::move(config)) {}

  /// Each worker runs this program's function; its place is in its environment, as for any worker of tprun.
  template <typename... Parameters, typename... Arguments>
  void operator()(void (*function)(Parameters...), Arguments&&... arguments) const {
    run(multiprocessing::Call::without_index(function, std::forward<Arguments>(arguments)...));
  }

  /// Each worker runs a program.
  void program(const std::string& name, const std::vector<std::string>& arguments = {}) const;

 private:
  void run(const multiprocessing::Call& call) const;

  LaunchConfig config_;
};

}  // namespace tensorplay::distributed::launcher
