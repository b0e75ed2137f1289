#include "rendezvous/mailbox.hpp"

#include <asio/post.hpp>

#include <atomic>

namespace tensorplay::rendezvous {

/// Lives as long as a wake-up is on its way; `read` is emptied when the reader goes.
struct MailReader::Shared : std::enable_shared_from_this<MailReader::Shared> {
  Shared(asio::io_context& l, Mailbox& m, std::string q, std::function<void(const std::string&)> r)
      : loop(l), mailbox(m), queue(std::move(q)), read(std::move(r)) {}

  void wake() {
    if (is_woken.exchange(true)) return;
    asio::post(loop, [self = shared_from_this()] { self->drain(); });
  }
  void drain() {
    is_woken = false;  // before the first take: mail that comes from now on wakes again
    while (read) {
      const auto text = mailbox.take(queue);
      if (!text) return;
      read(*text);
    }
  }

  asio::io_context& loop;
  Mailbox& mailbox;
  const std::string queue;
  std::function<void(const std::string&)> read;
  std::atomic<bool> is_woken{false};
};

MailReader::MailReader(asio::io_context& loop, Mailbox& mailbox, std::string queue,
                       std::function<void(const std::string&)> read)
    : mailbox_(mailbox),
      queue_(queue),
      shared_(std::make_shared<Shared>(loop, mailbox, std::move(queue), std::move(read))) {
  mailbox_.watch(queue_, [shared = shared_] { shared->wake(); });
  shared_->wake();  // what came before anybody watched
}

MailReader::~MailReader() {
  mailbox_.watch(queue_, {});
  shared_->read = nullptr;
}

}  // namespace tensorplay::rendezvous
