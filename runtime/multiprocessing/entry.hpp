/// How a process that was started to carry out a call does that instead of its main.
///
///     TP_SPAWN_CALL=FD:ERROR_FD      a child of start_processes
///     TP_SPAWN_CALL=/proc/PID/fd/FD  a worker of elastic_launch
///
/// The library stands in front of the C library's __libc_start_main: when the variable is set, the program's main is
/// exchanged for one that carries out the call, after the static objects are made. Where that does not reach (a program
/// that is not started by the C library), the first start_processes of the child's own main carries the call out.
/// Thread rules: the main thread.
#pragma once

#include "runtime/base/environment.hpp"

#include <functional>

namespace tensorplay::multiprocessing {

inline constexpr const char* kCallVariable = base::env::kSpawnCall;

/// Whether this process was started to carry out a call and has not begun to.
bool has_pending_call();

/// Carries the call out; the exit code.
int carry_out_pending_call();

/// Runs `function` and returns the exit code: an exception's type and text go to `error_fd`.
int run_and_tell(int error_fd, const std::function<void()>& function);

/// Whether this process is a daemonic child, and may have no children.
bool is_daemon();
void set_daemon(bool is_daemon);

/// From now on the kernel kills this process when `parent` ends; ends it at once when that has happened.
void die_with(int parent);

}  // namespace tensorplay::multiprocessing
