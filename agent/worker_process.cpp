#include "agent/worker_process.hpp"

#include "agent/entry_state.hpp"
#include "tensorplay/distributed/exit_codes.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <linux/close_range.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace tensorplay::agent {

namespace {

namespace exit_code = distributed::exit_code;

/// The child shares our memory and our stack: it must not allocate, lock, throw, or run instrumented code.
#define TP_CHILD_CODE __attribute__((noinline, no_sanitize("address", "thread", "undefined")))

/// Numbers are the order of the steps; the message of a failure names the step.
enum class Step : int { kNone, kStdio, kAffinity, kExec };

/// Everything the child needs, made by the parent; `step` and `error` are what the child leaves behind when it fails.
struct ChildPlan {
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  int stdio[3] = {-1, -1, -1};
  const cpu_set_t* cpus = nullptr;
  int cgroup_fd = -1;  // to move into, where being born there was refused
  pid_t parent = -1;
  const EntryState* entry = nullptr;
  char oom_score[16] = {};
  volatile Step step = Step::kNone;
  volatile int error = 0;
};

/// What rt_sigaction(2) takes. Only the handler is ever set, so the differing tails of architectures do not matter.
struct KernelSigaction {
  void (*handler)(int);
  unsigned long rest[3];
};

TP_CHILD_CODE void fail(ChildPlan* plan, Step step) {
  plan->error = errno;
  plan->step = step;
  syscall(SYS_exit_group, exit_code::kProgramNotFound);
}

TP_CHILD_CODE void write_small_file(int folder, const char* path, const char* text) {
  const long file = syscall(SYS_openat, folder, path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  syscall(SYS_write, file, text, strlen(text));
  syscall(SYS_close, file);
}

/// For kernels before 5.11, whose close_range cannot mark: descriptors that tprun itself was handed are the only ones
/// not marked already.
TP_CHILD_CODE void mark_descriptors_one_by_one() {
  const long folder = syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  struct Entry {
    std::uint64_t inode;
    std::int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
  };
  alignas(std::uint64_t) char buffer[2048];
  for (;;) {
    const long got = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      long fd = 0;
      for (const char* digit = entry->name; *digit >= '0' && *digit <= '9'; ++digit) fd = fd * 10 + (*digit - '0');
      if (fd > 2) syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
      at += entry->length;
    }
  }
  syscall(SYS_close, folder);
}

TP_CHILD_CODE void set_up_stdio(ChildPlan* plan) {
  // First lift every source above the three targets, so that no dup3 overwrites a source that is still needed.
  for (int target = 0; target < 3; ++target) {
    int& source = plan->stdio[target];
    if (source < 0 && target == 0) {
      source = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC));
      if (source < 0) fail(plan, Step::kStdio);
    }
    if (source < 0 || source > 2 || source == target) continue;
    source = static_cast<int>(syscall(SYS_fcntl, source, F_DUPFD_CLOEXEC, 3));
    if (source < 0) fail(plan, Step::kStdio);
  }
  for (int target = 0; target < 3; ++target) {
    const int source = plan->stdio[target];
    if (source < 0) continue;
    const long done = source == target ? syscall(SYS_fcntl, target, F_SETFD, 0) : syscall(SYS_dup3, source, target, 0);
    if (done < 0) fail(plan, Step::kStdio);
  }
}

TP_CHILD_CODE void set_up_signals(const EntryState* entry) {
  for (int signal = 1; signal < 32; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    // Read the words by hand: bitset's own functions may be instrumented.
    const auto* words = reinterpret_cast<const unsigned long*>(&entry->ignored_signals);
    const bool ignored = (words[signal / 64] >> (signal % 64)) & 1;
    const KernelSigaction action{ignored ? SIG_IGN : SIG_DFL, {}};
    syscall(SYS_rt_sigaction, signal, &action, nullptr, 8);
  }
  const unsigned long none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, 8);
}

[[noreturn]] TP_CHILD_CODE void run_child(ChildPlan* plan) {
  syscall(SYS_setsid);
  syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // Our parent may have died before the line above, and then nobody would ever tell us.
  if (syscall(SYS_getppid) != plan->parent) syscall(SYS_exit_group, exit_code::kInternalError);
  if (plan->cgroup_fd >= 0) write_small_file(plan->cgroup_fd, "cgroup.procs", "0");
  if (plan->oom_score[0] != '\0') write_small_file(AT_FDCWD, "/proc/self/oom_score_adj", plan->oom_score);
  syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &plan->entry->open_files, nullptr);
  if (plan->cpus != nullptr && syscall(SYS_sched_setaffinity, 0, sizeof(cpu_set_t), plan->cpus) < 0) {
    fail(plan, Step::kAffinity);
  }
  set_up_stdio(plan);
  if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) mark_descriptors_one_by_one();
  set_up_signals(plan->entry);
  syscall(SYS_execve, plan->argv[0], plan->argv, plan->envp);
  fail(plan, Step::kExec);
  __builtin_unreachable();
}

/// Makes the child, which never returns from here. It runs below this function's frame on the same stack while we are
/// suspended, so the system call must not sit behind a return address of its own: hence no libc wrapper.
/// Returns the pid, or a negative errno.
TP_CHILD_CODE long clone_child(long number, long first, long second, ChildPlan* plan) {
  long result;
#if defined(__x86_64__)
  register long third asm("r10") = 0;
  register long fourth asm("r8") = 0;
  asm volatile("syscall"
               : "=a"(result)
               : "0"(number), "D"(first), "S"(second), "d"(0L), "r"(third), "r"(fourth)
               : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = first;
  register long x1 asm("x1") = second;
  register long x2 asm("x2") = 0;
  register long x3 asm("x3") = 0;
  register long x4 asm("x4") = 0;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  result = x0;
#else
#error "clone_child knows x86-64 and aarch64; add this machine's system call"
#endif
  if (result == 0) run_child(plan);
  return result;
}

constexpr unsigned long kCloneFlags = CLONE_VM | CLONE_VFORK;

/// Born into the cgroup; negative errno when the kernel, a filter or a permission refuses.
long clone_into_cgroup(int cgroup_fd, ChildPlan* plan) {
  struct clone_args args {};
  args.flags = kCloneFlags | CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<std::uint64_t>(cgroup_fd);
  return clone_child(SYS_clone3, reinterpret_cast<long>(&args), sizeof args, plan);
}

/// The child must meet no signal while it shares our memory: a handler of ours would run in it.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string lower_first(std::string text) {
  if (text.size() > 1 && text[1] >= 'a' && text[1] <= 'z') text[0] = static_cast<char>(std::tolower(text[0]));
  return text;
}

[[noreturn]] void throw_startup_failure(const std::string& program, Step step, int error) {
  const std::string reason = lower_first(std::strerror(error));
  const std::string subject = "cannot start " + program + ": ";
  if (step == Step::kAffinity) {
    throw StartupFailure(subject + "its processors cannot be set: " + reason, error, exit_code::kInternalError);
  }
  if (step == Step::kStdio) {
    throw StartupFailure(subject + "its streams cannot be set up: " + reason, error, exit_code::kInternalError);
  }
  if (error == ENOENT && access(program.c_str(), F_OK) == 0) {
    throw StartupFailure(subject + "the interpreter that it names (#! line or ELF loader) does not exist", error,
                         exit_code::kCannotExecute);
  }
  if (error == ENOEXEC) {
    throw StartupFailure(subject + "exec format error; a script needs a #! line", error, exit_code::kCannotExecute);
  }
  const bool missing = error == ENOENT || error == ENOTDIR;
  throw StartupFailure(subject + reason, error, missing ? exit_code::kProgramNotFound : exit_code::kCannotExecute);
}

}  // namespace

pid_t spawn_worker(const SpawnRequest& request) {
  if (request.argv.empty()) throw StartupFailure("cannot start a worker: no program", EINVAL, exit_code::kUsage);
  const std::vector<char*> argv = pointers_to(request.argv);
  const std::vector<char*> envp = pointers_to(request.environment);
  ChildPlan plan;
  plan.argv = argv.data();
  plan.envp = envp.data();
  plan.stdio[0] = request.stdin_fd;
  plan.stdio[1] = request.stdout_fd;
  plan.stdio[2] = request.stderr_fd;
  plan.cpus = request.cpus ? &*request.cpus : nullptr;
  plan.parent = getpid();
  plan.entry = &entry_state();
  if (const auto score = original_oom_score()) std::snprintf(plan.oom_score, sizeof plan.oom_score, "%d", *score);

  long pid = -1;
  {
    const AllSignalsBlocked blocked;
    if (request.cgroup_fd >= 0) {
      pid = clone_into_cgroup(request.cgroup_fd, &plan);
      if (pid < 0) plan.cgroup_fd = request.cgroup_fd;
    }
    if (pid < 0) pid = clone_child(SYS_clone, static_cast<long>(kCloneFlags | SIGCHLD), 0, &plan);
  }
  if (pid < 0) {
    const int error = static_cast<int>(-pid);
    throw StartupFailure(
        "cannot start " + request.argv[0] + ": no process to be had: " + lower_first(std::strerror(error)), error,
        exit_code::kInternalError);
  }
  if (plan.step != Step::kNone) {
    while (waitpid(static_cast<pid_t>(pid), nullptr, 0) < 0 && errno == EINTR) {
    }
    throw_startup_failure(request.argv[0], plan.step, plan.error);
  }
  return static_cast<pid_t>(pid);
}

}  // namespace tensorplay::agent
