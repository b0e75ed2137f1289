/// A mailbox in memory: what tests of leader and agents speak through.
#pragma once

#include "rendezvous/mailbox.hpp"

#include <deque>
#include <map>

namespace tensorplay::rendezvous {

class MemoryMailbox final : public Mailbox {
 public:
  void post(const std::string& queue, const std::string& text) override {
    queues_[queue].push_back(text);
    if (const auto found = watchers_.find(queue); found != watchers_.end()) found->second();
  }
  std::optional<std::string> take(const std::string& queue) override {
    auto& texts = queues_[queue];
    if (texts.empty()) return std::nullopt;
    auto text = std::move(texts.front());
    texts.pop_front();
    return text;
  }
  void watch(const std::string& queue, std::function<void()> on_mail) override {
    if (on_mail) {
      watchers_[queue] = std::move(on_mail);
    } else {
      watchers_.erase(queue);
    }
  }

 private:
  std::map<std::string, std::deque<std::string>> queues_;
  std::map<std::string, std::function<void()>> watchers_;
};

}  // namespace tensorplay::rendezvous
