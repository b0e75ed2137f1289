/// Starting copies of this program that run one of its functions: multiprocessing::spawn.
///
///     void train(int index, const std::string& address) {
///       dist::init_process_group({.init_method = address, .world_size = 4, .rank = index});
///       ...
///     }
///
///     int main() { multiprocessing::spawn(train, {.nprocs = 4}, std::string("tcp://127.0.0.1:29500")); }
///
/// A child gets its index and the arguments, nothing else: no rank is invented in the environment.
/// Start method "spawn" (the default) runs this program again, from its beginning, and enters the function instead of
/// main once the static objects are made. It is safe whatever threads and connections the parent has. "fork" copies
/// the parent as it is and takes any callable, but no thread but the caller's: fork before threads and groups.
/// When the parent dies, in whatever way, the kernel kills the children; what a child starts is the child's to end.
/// Source: torch.multiprocessing.
#pragma once

#include "tensorplay/distributed/export.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace tensorplay::multiprocessing {

/// A child did not end well.
class TP_API ProcessException : public std::runtime_error {
 public:
  ProcessException(const std::string& message, int index, int pid)
      : std::runtime_error(message), error_index(index), error_pid(pid) {}
  int error_index;  ///< Which child.
  int error_pid;
};

/// It threw: "-- Process 1 terminated with the following error:" and the exception's type and text.
class TP_API ProcessRaisedException : public ProcessException {
 public:
  using ProcessException::ProcessException;
};

/// "process 1 terminated with exit code 3", "process 1 terminated with signal SIGKILL"
class TP_API ProcessExitedException : public ProcessException {
 public:
  ProcessExitedException(const std::string& message, int index, int pid, int code, std::string signal)
      : ProcessException(message, index, pid), exit_code(code), signal_name(std::move(signal)) {}
  int exit_code;            ///< -N for signal N.
  std::string signal_name;  ///< Empty when it exited.
};

struct SpawnOptions {
  int nprocs = 1;                      ///< Zero or less starts nothing and succeeds.
  bool join = true;                    ///< Wait for all; false returns the context at once.
  bool daemon = false;                 ///< The children may not start processes of their own by this interface.
  std::string start_method = "spawn";  ///< Or "fork"; spawn() knows only the first.
};

/// The children of one start.
///
/// Ends those that are left (SIGTERM, 5 s, SIGKILL) when it is destroyed. It has a thread, whose end would end the
/// children too. Thread rules: every method may be called from any thread.
class TP_API ProcessContext {
 public:
  ~ProcessContext();
  ProcessContext(const ProcessContext&) = delete;
  ProcessContext& operator=(const ProcessContext&) = delete;

  std::vector<int> pids() const;  ///< By index, those that have ended too.

  /// Waits for a child to end that has not been joined yet: true once all have been, false when some are left or the
  /// timeout is over, so call it until it is true. When one ended badly, the others get `grace_period` to end by
  /// themselves, then SIGTERM, then (after 30 s, or `grace_period`) SIGKILL, and the error of the one that ended
  /// first is thrown: ProcessRaisedException or ProcessExitedException.
  bool join(std::optional<std::chrono::milliseconds> timeout = std::nullopt,
            std::optional<std::chrono::milliseconds> grace_period = std::nullopt);

  struct State;
  explicit ProcessContext(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

using ProcessContextPtr = std::unique_ptr<ProcessContext>;

/// Bytes of arguments on their way to a child, which is the same program: numbers, enums and other trivially copyable
/// values as they are, strings, vectors and optionals by parts. No pointers.
class ArgumentWriter {
 public:
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                  "an argument has to be a trivially copyable value, a string, a vector or an optional of them");
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) {
    put(text.size());
    bytes_.append(text);
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    put(values.size());
    for (const T& value : values) put(value);
  }
  template <typename T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ArgumentReader {
 public:
  explicit ArgumentReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  void get(T& value) {
    std::memcpy(&value, next(sizeof value).data(), sizeof value);
  }
  void get(std::string& text) {
    std::size_t size = 0;
    get(size);
    text = next(size);
  }
  template <typename T>
  void get(std::vector<T>& values) {
    std::size_t size = 0;
    get(size);
    values.clear();
    for (std::size_t i = 0; i < size; ++i) {
      T value{};
      get(value);
      values.push_back(std::move(value));
    }
  }
  template <typename T>
  void get(std::optional<T>& value) {
    bool is_there = false;
    get(is_there);
    value.reset();
    if (is_there) get(value.emplace());
  }

 private:
  std::string_view next(std::size_t size) {
    if (size > bytes_.size()) throw std::runtime_error("multiprocessing: the arguments are cut short");
    const auto part = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return part;
  }
  std::string_view bytes_;
};

/// A function of this program and its arguments, as another process of the same program can carry it out.
struct Call {
  using Function = void (*)();
  using Unpack = void (*)(Function function, int index, std::string_view arguments);

  template <typename... Parameters, typename... Arguments>
  static Call of(void (*function)(int, Parameters...), Arguments&&... given) {
    static_assert(sizeof...(Parameters) == sizeof...(Arguments), "the function takes its index and these arguments");
    return {.unpack =
                [](Function erased, int index, std::string_view bytes) {
                  const auto typed = reinterpret_cast<void (*)(int, Parameters...)>(erased);
                  auto values = unpack_arguments<Parameters...>(bytes);
                  std::apply([&](auto&... value) { typed(index, value...); }, values);
                },
            .function = reinterpret_cast<Function>(function),
            .arguments = pack_arguments<Parameters...>(std::forward<Arguments>(given)...)};
  }

  /// For a function that does not ask for an index.
  template <typename... Parameters, typename... Arguments>
  static Call without_index(void (*function)(Parameters...), Arguments&&... given) {
    static_assert(sizeof...(Parameters) == sizeof...(Arguments), "the function takes these arguments");
    return {.unpack =
                [](Function erased, int, std::string_view bytes) {
                  const auto typed = reinterpret_cast<void (*)(Parameters...)>(erased);
                  auto values = unpack_arguments<Parameters...>(bytes);
                  std::apply([&](auto&... value) { typed(value...); }, values);
                },
            .function = reinterpret_cast<Function>(function),
            .arguments = pack_arguments<Parameters...>(std::forward<Arguments>(given)...)};
  }

 private:
  template <typename... Parameters, typename... Arguments>
  static std::string pack_arguments(Arguments&&... given) {
    ArgumentWriter writer;
    const std::tuple<std::decay_t<Parameters>...> values(std::forward<Arguments>(given)...);
    std::apply([&](const auto&... value) { (writer.put(value), ...); }, values);
    return writer.take();
  }

  template <typename... Parameters>
  static std::tuple<std::decay_t<Parameters>...> unpack_arguments(std::string_view bytes) {
    ArgumentReader reader(bytes);
    std::tuple<std::decay_t<Parameters>...> values;
    std::apply([&](auto&... value) { (reader.get(value), ...); }, values);
    return values;
  }

 public:
  Unpack unpack = nullptr;
  Function function = nullptr;
  std::string arguments = {};
};

TP_API ProcessContextPtr start_processes(const Call& call, const SpawnOptions& options);

/// Any callable, closures too: only with start_method "fork", else InvalidArgument.
TP_API ProcessContextPtr start_processes(const std::function<void(int index)>& function, const SpawnOptions& options);

/// Runs function(index, arguments...) in `nprocs` processes. Null after a successful join, else the context.
/// InvalidArgument "cannot find context for '...'" for another start method.
template <typename... Parameters, typename... Arguments>
ProcessContextPtr start_processes(void (*function)(int, Parameters...), const SpawnOptions& options = {},
                                  Arguments&&... arguments) {
  return start_processes(Call::of(function, std::forward<Arguments>(arguments)...), options);
}

/// start_processes by "spawn", whatever the options say (with a warning when they say otherwise).
TP_API ProcessContextPtr spawn(const Call& call, SpawnOptions options);

template <typename... Parameters, typename... Arguments>
ProcessContextPtr spawn(void (*function)(int, Parameters...), const SpawnOptions& options = {},
                        Arguments&&... arguments) {
  return spawn(Call::of(function, std::forward<Arguments>(arguments)...), options);
}

}  // namespace tensorplay::multiprocessing
