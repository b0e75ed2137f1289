#include "agent/console.hpp"

#include "runtime/base/environment.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/stat.h>

namespace tensorplay::agent {
namespace {

constexpr std::chrono::milliseconds kFlushAtEnd{2000};

bool can_rewrite_lines(int fd) {
  if (::isatty(fd) == 0) return false;
  const auto term = base::env_value("TERM");
  return term && !term->empty() && *term != "dumb";
}

bool is_same_place(int a, int b) {
  struct stat left = {};
  struct stat right = {};
  if (::fstat(a, &left) != 0 || ::fstat(b, &right) != 0) return false;
  return left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

std::shared_ptr<OutputTarget> make_target(const char* name, int fd) {
  auto target = std::make_shared<OutputTarget>();
  target->name = name;
  target->fd = fd;
  if (can_rewrite_lines(fd)) target->screen.emplace();
  return target;
}

}  // namespace

std::optional<Chatter> parse_chatter(std::string_view text) {
  std::string name(text);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name == "DEBUG" || name == "NOTSET") return Chatter::kDebug;
  if (name == "INFO") return Chatter::kInfo;
  if (name == "WARNING" || name == "WARN") return Chatter::kWarning;
  if (name == "ERROR" || name == "CRITICAL" || name == "FATAL") return Chatter::kError;
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size() || name.empty()) return std::nullopt;
  if (number <= 10) return Chatter::kDebug;
  if (number <= 20) return Chatter::kInfo;
  return number <= 30 ? Chatter::kWarning : Chatter::kError;
}

struct Console::Impl {
  Sink err;
  Sink out;
  std::unique_ptr<OutputWriter> err_writer;
  std::unique_ptr<OutputWriter> out_writer;  ///< Empty when stdout is where stderr is.
  Chatter threshold = Chatter::kWarning;
  std::string status_shown;

  Impl(int stdout_fd, int stderr_fd) {
    // A stderr that takes nothing leaves nobody to tell.
    err_writer = std::make_unique<OutputWriter>([](const OutputTarget&, int) {});
    err = Sink{err_writer.get(), make_target("stderr", stderr_fd)};
    if (is_same_place(stdout_fd, stderr_fd)) {
      out = err;
    } else {
      out_writer = std::make_unique<OutputWriter>([this](const OutputTarget& target, int error) {
        err.lines("tprun: " + target.name + ": " + std::strerror(error) + "; what workers write there is " +
                      (target.is_broken ? "no longer shown" : "lost until it takes bytes again") +
                      ", the job goes on\n",
                  TerminalScreen::kNobody);
      });
      out = Sink{out_writer.get(), make_target("stdout", stdout_fd)};
    }
    if (const auto level = base::env_value(base::env::kLogLevel)) {
      const auto known = parse_chatter(*level);
      threshold = known.value_or(Chatter::kWarning);
      if (!known && !level->empty()) {
        err.lines("tprun: LOGLEVEL=" + *level + ": no such level; DEBUG, INFO, WARNING and ERROR are\n",
                  TerminalScreen::kNobody);
      }
    }
  }
};

Console::Console(int stdout_fd, int stderr_fd) : impl_(std::make_unique<Impl>(stdout_fd, stderr_fd)) {}

Console::~Console() {
  clear_status();
  flush(kFlushAtEnd);
  // Stdout's writer speaks on stderr's, so it ends first.
  if (impl_->out_writer) impl_->out_writer->stop(std::chrono::milliseconds(0));
  impl_->err_writer->stop(std::chrono::milliseconds(100));
}

void Console::say(std::string_view line) {
  std::string text = "tprun: ";
  text += line;
  text += '\n';
  impl_->err.lines(std::move(text), TerminalScreen::kNobody);
}

void Console::say(Chatter level, std::string_view line) {
  if (level >= impl_->threshold) say(line);
}

void Console::print(std::string_view text) {
  std::string block(text);
  if (!block.empty() && block.back() != '\n') block += '\n';
  impl_->err.lines(std::move(block), TerminalScreen::kNobody);
}

void Console::status(std::string_view what, std::string_view clock) {
  if (!stderr_is_terminal()) {
    if (impl_->status_shown == what) return;
    impl_->status_shown = what;
    say(what);
    return;
  }
  std::string line = "tprun: ";
  line += what;
  if (!clock.empty()) line.append(" ").append(clock);
  if (line == impl_->status_shown) return;
  impl_->status_shown = line;
  impl_->err.in_place(std::move(line), TerminalScreen::kStatus);
}

void Console::clear_status() {
  if (impl_->status_shown.empty()) return;
  impl_->status_shown.clear();
  if (stderr_is_terminal()) impl_->err.in_place("", TerminalScreen::kStatus);
}

bool Console::flush(std::chrono::milliseconds patience) {
  const auto flush_one = [&](OutputWriter& writer) {
    std::uint64_t before = writer.bytes_done();
    while (!writer.flush(patience)) {
      const std::uint64_t now = writer.bytes_done();
      if (now == before) return false;
      before = now;
    }
    return true;
  };
  const bool is_out_done = !impl_->out_writer || flush_one(*impl_->out_writer);
  return flush_one(*impl_->err_writer) && is_out_done;
}

bool Console::stderr_is_terminal() const {
  return impl_->err.is_terminal();
}

bool Console::wants_colour() const {
  const auto no_colour = base::env_value("NO_COLOR");
  return stderr_is_terminal() && (!no_colour || no_colour->empty());
}

std::function<void(std::string_view)> Console::line_taker() {
  return [err = impl_->err](std::string_view line) mutable {
    err.lines(std::string(line) + "\n", TerminalScreen::kNobody);
  };
}

int Console::width() const {
  winsize size = {};
  if (::ioctl(impl_->err.target->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
}

std::uint64_t Console::bytes_done() const {
  return impl_->err_writer->bytes_done() + (impl_->out_writer ? impl_->out_writer->bytes_done() : 0);
}

Sink& Console::out() {
  return impl_->out;
}
Sink& Console::err() {
  return impl_->err;
}

}  // namespace tensorplay::agent
