#include "agent/worker_output.hpp"

#include "agent/log_folder.hpp"
#include "agent/output_drain.hpp"
#include "agent/worker_stream.hpp"
#include "runtime/base/host.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <asio/steady_timer.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <set>
#include <unistd.h>

namespace tensorplay::agent {
namespace {

constexpr std::size_t kReadBuffer = std::size_t{128} << 10;
constexpr std::size_t kPipeSize = std::size_t{256} << 10;
constexpr std::size_t kPipesTogether = std::size_t{16} << 20;  ///< Of the user's share of pipe memory (64 MiB).
constexpr std::size_t kQueuedTogether = std::size_t{32} << 20;
constexpr std::chrono::milliseconds kTick{1};
constexpr std::chrono::milliseconds kFilesAtEnd{2000};

constexpr StreamMask kStreams[] = {kStdout, kStderr};

struct Pipe {
  base::UniqueFd read_end;
  base::UniqueFd write_end;
};

Pipe make_pipe(std::size_t size) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw distributed::DistError(std::string("a worker's output: pipe: ") + std::strerror(errno));
  }
  // A larger pipe lets a worker write on while we are busy elsewhere; where it is refused the usual one will do.
  ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(size));
  return {base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

base::UniqueFd open_for_writing(const std::string& path, int flags) {
  base::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | flags, 0666));
  if (!file) throw distributed::DistError(path + ": " + std::strerror(errno));
  return file;
}

base::UniqueFd open_log(const std::string& path) {
  return open_for_writing(path, O_CREAT | O_TRUNC | O_APPEND);
}

}  // namespace

struct WorkerOutput::Impl {
  asio::io_context& loop;
  const LoggingPlan logging;
  const std::string role;
  const int nproc;
  const StdinMode stdin_mode;
  const std::string host = base::short_host_name();
  std::unique_ptr<Console> own_console;
  Console& console;
  OutputWriter files;
  LogFolder log_folder;
  ErrorFolder error_folder;
  StreamShared shared;
  std::vector<std::shared_ptr<WorkerStream>> streams;
  asio::steady_timer tick_timer;
  bool is_tick_due = false;
  std::unique_ptr<OutputDrain> drain;

  // Of the current round:
  int round = -1;
  std::map<int, std::shared_ptr<StderrTail>> tails;  ///< By local rank.
  std::map<int, std::string> stderr_logs;
  std::map<StreamMask, Sink> filtered;

  Impl(asio::io_context& loop_, const LaunchPlan& plan, Console* given)
      : loop(loop_),
        logging(plan.logging),
        role(plan.role),
        nproc(plan.nproc_per_node),
        stdin_mode(plan.stdin_mode),
        own_console(given == nullptr ? std::make_unique<Console>() : nullptr),
        console(given == nullptr ? *own_console : *given),
        // A full disk is full for all: one line for each error, not for each file.
        files([err = console.err(), said = std::set<int>()](const OutputTarget& target, int error) mutable {
          if (!said.insert(error).second) return;
          err.lines("tprun: " + target.name + ": " + std::strerror(error) +
                        "; what does not fit is lost from the log files, the job goes on\n",
                    TerminalScreen::kNobody);
        }),
        log_folder(plan.logging.log_dir, plan.rdzv.run_id),
        shared{
            loop_, std::vector<char>(), 0, [this] { want_tick(); }, [this] { stream_ended(); }, console.err().target},
        tick_timer(loop_) {
    const std::size_t pipes = 2 * static_cast<std::size_t>(std::max(nproc, 1));
    shared.quota = std::clamp(kQueuedTogether / pipes, std::size_t{32} << 10, 2 * kReadBuffer);
  }

  bool files_are_off() const { return logging.log_dir == "/dev/null"; }
  StreamMask tee_mask(int local_rank) const {
    return files_are_off() ? StreamMask{0} : logging.tee.mask_for(local_rank);
  }
  StreamMask file_mask(int local_rank) const {
    if (files_are_off()) return 0;
    return static_cast<StreamMask>(logging.redirects.mask_for(local_rank) | logging.tee.mask_for(local_rank));
  }
  bool is_shown(int local_rank) const {
    const auto& filter = logging.local_ranks_filter;
    return filter.empty() || std::find(filter.begin(), filter.end(), local_rank) != filter.end();
  }
  std::size_t pipe_size() const {
    const std::size_t share = kPipesTogether / (2 * static_cast<std::size_t>(std::max(nproc, 1)));
    return std::clamp(share, std::size_t{4096}, kPipeSize);
  }

  void begin_round(int new_round) {
    if (new_round == round) return;
    round = new_round;
    tails.clear();
    stderr_logs.clear();
    filtered.clear();
  }

  std::shared_ptr<OutputTarget> file_target(const std::string& path) const {
    auto target = std::make_shared<OutputTarget>();
    target->name = path;
    target->owned = open_log(path);
    target->fd = target->owned.get();
    return target;
  }

  /// The side file for lines that hold one of the filters; one for all workers of a round.
  std::optional<Sink> filtered_sink(StreamMask stream) {
    const auto& filters = stream == kStdout ? logging.duplicate_stdout_filters : logging.duplicate_stderr_filters;
    if (filters.empty()) return std::nullopt;
    auto found = filtered.find(stream);
    if (found == filtered.end()) {
      const char* name = stream == kStdout ? "/filtered_stdout.log" : "/filtered_stderr.log";
      found = filtered.emplace(stream, Sink{&files, file_target(log_folder.attempt(round) + name)}).first;
    }
    return found->second;
  }

  base::UniqueFd open_stdin(int global_rank) const {
    bool inherits = false;
    switch (stdin_mode) {
      case StdinMode::kDefault:
        inherits = nproc == 1 || global_rank == 0;
        break;
      case StdinMode::kNone:
        break;
      case StdinMode::kFirst:
        inherits = global_rank == 0;
        break;
      case StdinMode::kAll:
        inherits = true;
        break;
    }
    return inherits ? base::UniqueFd(::fcntl(0, F_DUPFD_CLOEXEC, 3)) : base::UniqueFd();
  }

  base::UniqueFd start_stream(StreamRoutes routes) {
    if (shared.buffer.empty()) shared.buffer.resize(kReadBuffer);
    Pipe pipe = make_pipe(pipe_size());
    streams.push_back(std::make_shared<WorkerStream>(shared, std::move(pipe.read_end), std::move(routes)));
    streams.back()->start();
    return std::move(pipe.write_end);
  }

  base::UniqueFd open_stream(StreamMask stream, int local_rank, int global_rank, const std::string& log_path) {
    const bool shown = is_shown(local_rank);
    const bool teed = (tee_mask(local_rank) & stream) != 0 && shown;
    Sink& console_sink = stream == kStdout ? console.out() : console.err();
    if (!log_path.empty() && !teed) return open_log(log_path);
    if (log_path.empty() && stream == kStdout) {
      return shown ? base::UniqueFd() : open_for_writing("/dev/null", 0);
    }
    // A terminal stays one: nobody asked for anything to be done with it.
    if (log_path.empty() && shown && ::isatty(console_sink.target->fd) != 0) return {};

    StreamRoutes routes;
    routes.owner = 2 * local_rank + (stream == kStdout ? 0 : 1);
    routes.is_alone = nproc == 1;
    if (shown) routes.console = console_sink;
    if (stream == kStderr) routes.tail = tails[local_rank] = std::make_shared<StderrTail>();
    if (teed) {
      routes.file = Sink{&files, file_target(log_path)};
      routes.prefix = expand_prefix(logging.line_prefix_template, {role, global_rank, local_rank, host});
      routes.filtered = filtered_sink(stream);
      routes.filters = stream == kStdout ? logging.duplicate_stdout_filters : logging.duplicate_stderr_filters;
    }
    return start_stream(std::move(routes));
  }

  WorkerStdio open(int new_round, int local_rank, int global_rank) {
    begin_round(new_round);
    WorkerStdio stdio;
    stdio.in = open_stdin(global_rank);
    const StreamMask mask = file_mask(local_rank);
    if (files_are_off()) {
      // Nothing is kept, error files included.
    } else if (mask != 0 || !logging.log_dir.empty()) {
      const bool is_new = log_folder.run().empty();
      const std::string folder = log_folder.worker(round, local_rank);
      // Where the user chose the folder, it is in the report too, and needs no line.
      const std::string where = "logs are in " + log_folder.run();
      if (is_new && logging.log_dir.empty()) console.say(where);
      if (is_new && !logging.log_dir.empty()) console.say(Chatter::kInfo, where);
      stdio.error_file = folder + "/error.json";
      if ((mask & kStdout) != 0) stdio.stdout_log = folder + "/stdout.log";
      if ((mask & kStderr) != 0) stdio.stderr_log = folder + "/stderr.log";
    } else {
      stdio.error_file = error_folder.file(round, local_rank);
    }
    for (const StreamMask stream : kStreams) {
      const std::string& path = stream == kStdout ? stdio.stdout_log : stdio.stderr_log;
      (stream == kStdout ? stdio.out : stdio.err) = open_stream(stream, local_rank, global_rank, path);
    }
    if (!stdio.stderr_log.empty()) stderr_logs[local_rank] = stdio.stderr_log;
    return stdio;
  }

  void want_tick() {
    if (std::exchange(is_tick_due, true)) return;
    tick_timer.expires_after(kTick);
    tick_timer.async_wait([this](const asio::error_code& error) {
      if (error) return;
      is_tick_due = false;
      const auto now = WorkerStream::Clock::now();
      // A stream that ends leaves the list, so the list is walked by index.
      const auto walked = streams;
      for (const auto& stream : walked) stream->tick(now);
    });
  }

  void stream_ended() {
    std::erase_if(streams, [](const auto& stream) { return stream->has_ended(); });
    if (drain) drain->stream_ended();
  }

  void give_up_streams() {
    const auto walked = streams;
    for (const auto& stream : walked) stream->give_up();
  }
};

WorkerOutput::WorkerOutput(asio::io_context& loop, const LaunchPlan& plan, Console& console)
    : impl_(std::make_unique<Impl>(loop, plan, &console)) {}

WorkerOutput::WorkerOutput(asio::io_context& loop, const LaunchPlan& plan)
    : impl_(std::make_unique<Impl>(loop, plan, nullptr)) {}

WorkerOutput::~WorkerOutput() {
  impl_->drain.reset();
  impl_->give_up_streams();
  impl_->files.stop(kFilesAtEnd);
}

WorkerStdio WorkerOutput::open(int round, int local_rank, int global_rank) {
  return impl_->open(round, local_rank, global_rank);
}

void WorkerOutput::drain(std::chrono::milliseconds limit, std::function<void()> done) {
  // What cannot be written to a file or to stdout is told on stderr: that one is the last.
  std::vector<OutputWriter*> writers{&impl_->files, impl_->console.err().writer};
  if (impl_->console.out().writer != writers.back()) writers.insert(writers.begin() + 1, impl_->console.out().writer);
  OutputDrain::Streams streams;
  streams.are_open = [this] { return !impl_->streams.empty(); };
  streams.give_up = [this] { impl_->give_up_streams(); };
  impl_->drain =
      std::make_unique<OutputDrain>(impl_->loop, std::move(writers), std::move(streams), limit, std::move(done));
}

std::vector<std::string> WorkerOutput::last_lines(int local_rank, std::size_t count) const {
  if (const auto tail = impl_->tails.find(local_rank); tail != impl_->tails.end()) return tail->second->lines(count);
  const auto log = impl_->stderr_logs.find(local_rank);
  return log == impl_->stderr_logs.end() ? std::vector<std::string>() : last_lines_of_file(log->second, count);
}

bool WorkerOutput::is_in_sight(int local_rank) const {
  constexpr std::uint64_t kScreenful = 2000;
  const auto tail = impl_->tails.find(local_rank);
  if (tail == impl_->tails.end() || !tail->second->shown_until) return false;
  return impl_->shared.shown_on_stderr - *tail->second->shown_until <= kScreenful;
}

const std::string& WorkerOutput::run_folder() const {
  return impl_->log_folder.run();
}

Console& WorkerOutput::console() {
  return impl_->console;
}

}  // namespace tensorplay::agent
