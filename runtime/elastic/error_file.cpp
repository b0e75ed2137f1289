#include "runtime/elastic/error_file.hpp"

#include "runtime/base/environment.hpp"
#include "runtime/base/fd.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace tensorplay::distributed::elastic {

std::string error_file_path() {
  return base::env_value(base::env::kErrorFile).value_or("");
}

std::string error_file_text(const Thrown& thrown, const std::string& call_stack) {
  const std::chrono::duration<double> since_epoch = thrown.when.time_since_epoch();
  std::string message = thrown.type;
  if (!thrown.text.empty()) message.append(message.empty() ? "" : ": ").append(thrown.text);
  nlohmann::json extra;
  extra["py_callstack"] = call_stack;
  extra["timestamp"] = std::to_string(static_cast<long long>(since_epoch.count()));
  extra["thrown_at"] = since_epoch.count();
  nlohmann::json file;
  file["message"]["message"] = message;
  file["message"]["extraInfo"] = extra;
  return file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool write_error_file(const std::string& path, const std::string& text) noexcept {
  try {
    const std::string temporary = path + "." + std::to_string(::getpid());
    {
      const base::UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
      if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        ::unlink(temporary.c_str());
        return false;
      }
    }
    if (std::rename(temporary.c_str(), path.c_str()) == 0) return true;
    ::unlink(temporary.c_str());
  } catch (...) {
  }
  return false;
}

}  // namespace tensorplay::distributed::elastic
