#include "agent/child_news.hpp"

#include <cerrno>
#include <signal.h>
#include <system_error>
#include <unistd.h>

#include <sys/signalfd.h>

namespace tensorplay::agent {

namespace {

int open_signalfd() {
  sigset_t child_news;
  sigemptyset(&child_news);
  sigaddset(&child_news, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &child_news, nullptr);
  const int fd = signalfd(-1, &child_news, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
  return fd;
}

}  // namespace

ChildNews::ChildNews(asio::io_context& loop, std::function<void()> on_news)
    : on_news_(std::move(on_news)), signals_(loop, open_signalfd()) {
  wait();
}

ChildNews::~ChildNews() {
  *alive_ = false;
}

void ChildNews::wait() {
  signals_.async_wait(asio::posix::stream_descriptor::wait_read, [this, alive = alive_](std::error_code error) {
    if (error || !*alive) return;
    signalfd_siginfo news[8];
    while (read(signals_.native_handle(), news, sizeof news) > 0) {
    }
    wait();
    on_news_();
  });
}

}  // namespace tensorplay::agent
