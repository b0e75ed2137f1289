#include "agent/program_lookup.hpp"

#include "agent/option_values.hpp"
#include "runtime/base/environment.hpp"

#include <cerrno>

namespace tensorplay::agent {
namespace {

struct Found {
  std::string path;    ///< Empty: not found.
  std::string where;   ///< "in PATH", "beside tprun".
  int error = ENOENT;  ///< Why not, when it is empty: EACCES when a file was there that may not be executed.
};

class Lookup {
 public:
  Lookup(const ProgramRequest& request, const EnvironmentView& environment, const Machine& machine)
      : request_(request), environment_(environment), machine_(machine), name_(request.words.front()) {}

  ProgramPlan find() {
    plan_.display_name = name_.empty() ? "''" : name_;
    if (request_.run_path) {
      by_python("--run-path: a script");
    } else if (request_.is_module) {
      by_python("-m: a module");
    } else if (request_.no_python) {
      without_python();
    } else if (name_ == "-") {
      by_python("a script on standard input");
    } else if (name_.find('/') != std::string::npos) {
      path_of_kind(machine_.kind_of(name_));
    } else {
      bare_name();
    }
    return std::move(plan_);
  }

 private:
  bool is_python_file(std::string_view name) const { return name.ends_with(".py"); }

  void path_of_kind(FileKind kind) {
    switch (kind) {
      case FileKind::kMissing:
        return fail(ENOENT, "there is no such file");
      case FileKind::kUnreachable:
        return fail(EACCES, "a folder on its path may not be entered");
      case FileKind::kFolder:
        if (machine_.kind_of(name_ + "/__main__.py") >= FileKind::kFile)
          return by_python("a folder with a __main__.py");
        return fail(EACCES, "it is a folder");
      case FileKind::kFile:
        return by_python(is_python_file(name_) ? "a .py file" : "a file without execute permission");
      case FileKind::kExecutable:
        if (is_python_file(name_)) return by_python("a .py file");
        return directly(name_, "an executable file");
      case FileKind::kOther:
        if (is_python_file(name_) || name_.starts_with("/dev/") || name_.starts_with("/proc/")) {
          return by_python("a stream to read a script from");
        }
        return fail(EACCES, "it is not a regular file");
    }
  }

  void bare_name() {
    const FileKind here = machine_.kind_of(name_);
    const bool is_file_here = here == FileKind::kFile || here == FileKind::kExecutable;
    if (is_file_here && is_python_file(name_)) return path_of_kind(here);
    if (here == FileKind::kExecutable) return directly("./" + name_, "an executable file in this folder");
    const Found found = in_path(name_);
    if (!found.path.empty()) {
      if (!is_python_file(name_)) return directly(found.path, "an executable file in PATH");
      script_ = found.path;
      return by_python("a .py file in PATH");
    }
    if (is_file_here) return by_python("a file without execute permission in this folder");
    if (here == FileKind::kFolder) return path_of_kind(here);
    fail(ENOENT,
         is_python_file(name_) ? "there is no such file" : "there is no such program in this folder or in PATH");
  }

  void without_python() {
    if (name_.find('/') != std::string::npos) {
      const FileKind kind = machine_.kind_of(name_);
      if (kind == FileKind::kMissing) return fail(ENOENT, "there is no such file");
      if (kind == FileKind::kExecutable) return directly(name_, "--no-python: an executable file");
      return fail(EACCES, kind == FileKind::kFolder ? "it is a folder"
                                                    : "it may not be executed, and --no-python forbids Python");
    }
    const Found found = in_path(name_);
    if (!found.path.empty()) return directly(found.path, "--no-python: an executable file in PATH");
    const FileKind here = machine_.kind_of(name_);
    if (here == FileKind::kExecutable) return directly("./" + name_, "--no-python: an executable file in this folder");
    if (here == FileKind::kFile) return fail(EACCES, "it may not be executed, and --no-python forbids Python");
    fail(found.error, "there is no such program in PATH or in this folder");
  }

  void directly(const std::string& path, const std::string& reason) {
    plan_.argv = {path};
    plan_.argv.insert(plan_.argv.end(), request_.words.begin() + 1, request_.words.end());
    plan_.reason = reason;
    plan_.first_argument = 1;
  }

  void by_python(const std::string& reason) {
    const Found python = find_python();
    const bool is_module = request_.is_module && !request_.run_path;
    plan_.argv = {python.path.empty() ? "python3" : python.path, "-u"};
    if (is_module) plan_.argv.push_back("-m");
    plan_.argv.push_back(script_.empty() ? name_ : script_);
    plan_.first_argument = plan_.argv.size();
    plan_.argv.insert(plan_.argv.end(), request_.words.begin() + 1, request_.words.end());
    plan_.reason = reason + ": run by the python " + python.where;
    if (python.path.empty()) {
      plan_.startup_errno = python.error;
      plan_.reason = reason +
                     ", and there is no Python to run it: none in PYTHON_EXEC, beside tprun, in VIRTUAL_ENV, "
                     "in CONDA_PREFIX or in PATH";
      if (!python.where.empty()) plan_.reason = reason + ", and " + python.where;
      return;
    }
    if (!is_module && request_.run_path && machine_.kind_of(name_) == FileKind::kMissing) {
      plan_.startup_errno = ENOENT;
      plan_.reason = "there is no such file";
    }
  }

  void fail(int error, const std::string& reason) {
    plan_.argv = request_.words;
    plan_.first_argument = 1;
    plan_.startup_errno = error;
    plan_.reason = reason;
  }

  Found in_path(std::string_view name) const {
    Found found;
    if (name.empty()) return found;
    const std::string_view path = environment_.find(base::env::kPath).value_or("/usr/local/bin:/usr/bin:/bin");
    for (const std::string_view folder : split(path, ':')) {
      const std::string candidate = (folder.empty() ? "." : std::string(folder)) + "/" + std::string(name);
      switch (machine_.kind_of(candidate)) {
        case FileKind::kExecutable:
          return {candidate, "in PATH", 0};
        case FileKind::kFile:
          found.error = EACCES;
          break;
        default:
          break;
      }
    }
    return found;
  }

  std::optional<Found> python_in(const std::string& folder, const std::string& where) const {
    for (const char* name : {"/python", "/python3"}) {
      if (machine_.kind_of(folder + name) == FileKind::kExecutable) return Found{folder + name, where, 0};
    }
    return std::nullopt;
  }

  /// Folders of the system, where lying side by side means nothing: an activated environment goes before them.
  static bool is_system_folder(std::string_view folder) {
    return folder == "/usr/bin" || folder == "/bin" || folder == "/usr/local/bin" || folder == "/usr/sbin" ||
           folder == "/sbin";
  }

  Found find_python() const {
    if (const auto chosen = environment_.find_non_empty(base::env::kPythonExec)) {
      if (chosen->find('/') == std::string_view::npos) {
        Found found = in_path(*chosen);
        found.where =
            found.path.empty() ? "PYTHON_EXEC=" + std::string(*chosen) + " is not in PATH" : "that PYTHON_EXEC names";
        return found;
      }
      const FileKind kind = machine_.kind_of(std::string(*chosen));
      if (kind == FileKind::kExecutable) return {std::string(*chosen), "that PYTHON_EXEC names", 0};
      return {"", "PYTHON_EXEC=" + std::string(*chosen) + " cannot be executed",
              kind == FileKind::kMissing ? ENOENT : EACCES};
    }
    for (const std::string& folder : machine_.own_folders()) {
      if (is_system_folder(folder)) continue;
      if (auto found = python_in(folder, "beside tprun")) return *found;
    }
    for (const char* variable : {base::env::kVirtualEnv, base::env::kCondaPrefix}) {
      const auto prefix = environment_.find_non_empty(variable);
      if (!prefix) continue;
      if (auto found = python_in(std::string(*prefix) + "/bin", std::string("of ") + variable)) return *found;
    }
    for (const char* name : {"python3", "python"}) {
      if (Found found = in_path(name); !found.path.empty()) return found;
    }
    return {};
  }

  const ProgramRequest& request_;
  const EnvironmentView& environment_;
  const Machine& machine_;
  const std::string& name_;
  std::string script_;  ///< What Python is given, when it is not the name as written.
  ProgramPlan plan_;
};

}  // namespace

ProgramPlan find_program(const ProgramRequest& request, const EnvironmentView& environment, const Machine& machine) {
  return Lookup(request, environment, machine).find();
}

}  // namespace tensorplay::agent
