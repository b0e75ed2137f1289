#include "agent/wait_status.hpp"

namespace tensorplay::agent {

WaitStatus::WaitStatus(asio::io_context& loop, Console& console, std::string job)
    : console_(console), job_(job.empty() ? "" : std::move(job) + ": "), tick_(loop) {}

void WaitStatus::wait(const std::string& text, std::chrono::milliseconds limit) {
  set(text, is_waiting_ ? began_ : Clock::now(), limit);
}

void WaitStatus::show(const rendezvous::NewsOrder& news) {
  if (!news.is_status) {
    return news.is_notable ? console_.say(news.text) : console_.say(Chatter::kInfo, news.text);
  }
  const auto in_ms = [](double seconds) { return std::chrono::milliseconds(static_cast<long>(seconds * 1000)); };
  set(news.text, Clock::now() - in_ms(news.waited_seconds), in_ms(news.limit_seconds));
}

void WaitStatus::clear() {
  is_waiting_ = false;
  tick_.cancel();
  console_.clear_status();
}

void WaitStatus::set(std::string text, Clock::time_point began, std::chrono::milliseconds limit) {
  text_ = std::move(text);
  began_ = began;
  limit_ = limit;
  is_waiting_ = true;
  draw();
}

void WaitStatus::draw() {
  if (!console_.stderr_is_terminal()) {
    console_.status(job_ + text_);
    return;
  }
  const auto waited = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began_);
  auto clock = "(" + std::to_string(waited.count()) + " s";
  if (limit_.count() > 0) clock += " of " + std::to_string(limit_.count() / 1000) + " s";
  console_.status(job_ + text_, clock + ")");
  tick_.expires_at(began_ + waited + std::chrono::seconds(1));
  tick_.async_wait([this](const std::error_code& error) {
    if (!error && is_waiting_) draw();
  });
}

}  // namespace tensorplay::agent
