#include "runtime/base/fd.hpp"
#include "runtime/multiprocessing/call_file.hpp"
#include "runtime/multiprocessing/children.hpp"
#include "runtime/multiprocessing/entry.hpp"
#include "tensorplay/distributed/exit_codes.hpp"
#include "tensorplay/distributed/launcher.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sstream>
#include <string>
#include <system_error>
#include <unistd.h>

#include <sys/wait.h>

extern char** environ;

namespace tensorplay::distributed::launcher {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

fs::path folder_of_library() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&folder_of_library), &info) == 0) return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored).parent_path();
}

/// Beside this program; ../bin and ../../bin of the library (lib and lib/<architecture>); PATH.
std::string find_tprun(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code ignored;
  const fs::path library = folder_of_library();
  for (const fs::path& folder :
       {fs::read_symlink("/proc/self/exe", ignored).parent_path(), library / "../bin", library / "../../bin"}) {
    if (::access((folder / "tprun").c_str(), X_OK) == 0) return folder / "tprun";
  }
  return "tprun";
}

void add(Words& words, const char* option, const std::string& value) {
  if (!value.empty()) words.push_back(std::string(option) + "=" + value);
}

Words command_line(const LaunchConfig& config, const std::string& report, const std::string& program,
                   const Words& arguments) {
  Words words = {find_tprun(config.tprun)};
  add(words, "--nproc-per-node", std::to_string(config.nproc_per_node));
  const std::string least = std::to_string(config.min_nodes);
  add(words, "--nnodes", config.min_nodes == config.max_nodes ? least : least + ":" + std::to_string(config.max_nodes));
  add(words, "--max-restarts", std::to_string(config.max_restarts));
  add(words, "--rdzv-id", config.run_id);
  add(words, "--role", config.role);
  add(words, "--rdzv-backend", config.rdzv_backend);
  add(words, "--rdzv-endpoint", config.rdzv_endpoint);
  std::string settings;
  for (const auto& [name, value] : config.rdzv_configs) {
    settings.append(settings.empty() ? "" : ",").append(name).append("=").append(value);
  }
  add(words, "--rdzv-conf", settings);
  add(words, "--local-addr", config.local_addr);
  add(words, "--log-dir", config.log_dir);
  add(words, "--redirects", config.redirects);
  add(words, "--tee", config.tee);
  add(words, "--log-line-prefix-template", config.log_line_prefix_template);
  add(words, "--signals-to-handle", config.signals_to_handle);
  add(words, "--report", report);
  words.insert(words.end(), config.options.begin(), config.options.end());
  words.emplace_back("--no-python");
  words.emplace_back("--");
  words.push_back(program);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::vector<char*> pointers(Words& words) {
  std::vector<char*> result;
  for (auto& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

/// Starts tprun; in the thread that keeps it, so that it ends with this process.
int start(Words words, const std::string& variable) {
  Words variables;
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
  if (!variable.empty()) variables.push_back(variable);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  int pid = -1;
  const int error = ::posix_spawnp(&pid, words.front().c_str(), nullptr, &attributes, pointers(words).data(),
                                   pointers(variables).data());
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    throw DistError("elastic_launch: " + words.front() + " cannot be started: " +
                    std::error_code(error, std::generic_category()).message() + "; give LaunchConfig::tprun");
  }
  return pid;
}

ChildFailedError::Failure failure_of(const nlohmann::json& cause) {
  ChildFailedError::Failure failure;
  if (!cause.is_object()) return failure;
  const auto text = [&](const char* name) {
    const auto found = cause.find(name);
    return found != cause.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto number = [&](const char* name) {
    const auto found = cause.find(name);
    return found != cause.end() && found->is_number_integer() ? found->get<int>() : -1;
  };
  failure.rank = number("rank");
  failure.host = text("host");
  failure.pid = number("pid");
  failure.ended = text("ended");
  failure.message = text("message");
  return failure;
}

[[noreturn]] void throw_failure(const std::string& report_text, int code) {
  const auto report = nlohmann::json::parse(report_text, nullptr, false);
  if (code == exit_code::kUsage || !report.is_object()) {
    throw DistError("elastic_launch: tprun ended with exit code " + std::to_string(code) + " before it ran anything");
  }
  const auto failure = failure_of(report.value("root_cause", nlohmann::json()));
  std::string text = "elastic_launch: " + report.value("why", std::string("the job failed"));
  if (!failure.message.empty()) text += ": " + failure.message;
  throw ChildFailedError(text, code, failure);
}

/// A folder for tprun's report (which it renames into place), gone with this object.
class ReportFolder {
 public:
  ReportFolder() : path_((fs::temp_directory_path() / "tp_launch_XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path_);
  }
  ~ReportFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ReportFolder(const ReportFolder&) = delete;
  ReportFolder& operator=(const ReportFolder&) = delete;

  std::string file() const { return path_ + "/report.json"; }
  std::string text() const {
    std::ifstream file(path_ + "/report.json");
    std::ostringstream content;
    content << file.rdbuf();
    return content.str();
  }

 private:
  std::string path_;
};

/// Runs tprun to its end.
void launch(const LaunchConfig& config, const std::string& program, const Words& arguments,
            const std::string& variable) {
  const ReportFolder report;
  auto words = command_line(config, report.file(), program, arguments);
  multiprocessing::Children children(1, [&](int, int) { return start(words, variable); });
  try {
    while (!children.join(std::nullopt, std::nullopt)) {
    }
  } catch (const multiprocessing::ProcessExitedException& ended) {
    const int code = ended.exit_code < 0 ? exit_code::kSignalBase - ended.exit_code : ended.exit_code;
    throw_failure(report.text(), code);
  }
}

}  // namespace

void elastic_launch::program(const std::string& name, const std::vector<std::string>& arguments) const {
  launch(config_, name, arguments, "");
}

void elastic_launch::run(const multiprocessing::Call& call) const {
  if (multiprocessing::has_pending_call()) std::exit(multiprocessing::carry_out_pending_call());
  multiprocessing::WrittenCall written;
  written.call = call;
  const base::UniqueFd file(multiprocessing::make_memory_file("tp-launch-call", multiprocessing::write_call(written)));
  std::error_code ignored;
  launch(config_, fs::read_symlink("/proc/self/exe", ignored), {},
         std::string(multiprocessing::kCallVariable) + "=/proc/" + std::to_string(::getpid()) + "/fd/" +
             std::to_string(file.get()));
}

}  // namespace tensorplay::distributed::launcher
