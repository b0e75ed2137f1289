#include "runtime/store/mailbox_table.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tensorplay::store {

MailboxTable::Mailbox& MailboxTable::mailbox_of(std::string_view name) {
  if (const auto found = mailboxes_.find(name); found != mailboxes_.end()) return found->second;
  return mailboxes_.try_emplace(std::string(name)).first->second;
}

void MailboxTable::push(std::string_view name, std::string&& value, Deliveries& deliveries) {
  Mailbox& mailbox = mailbox_of(name);
  mailbox.entries.push_back(make_blob(std::move(value)));
  if (mailbox.entries.size() == 1 && !watched_.empty()) {
    if (auto text = std::string(name); watched_.contains(text)) filled_.push_back(std::move(text));
  }
  const auto index = mailbox.base + mailbox.entries.size() - 1;
  std::erase_if(mailbox.readers, [&](const Reader& reader) {
    if (reader.first > index) return false;
    deliveries.push_back({reader.id, index, mailbox.entries.back()});
    waiting_.erase(reader.id);
    return true;
  });
}

bool MailboxTable::push_once(std::string_view mailbox, const std::string& sender, std::uint64_t sequence,
                             std::string&& value, Deliveries& deliveries) {
  auto& next = next_sequence_[sender];
  if (sequence < next || sequence == std::numeric_limits<std::uint64_t>::max()) return false;
  next = sequence + 1;
  push(mailbox, std::move(value), deliveries);
  return true;
}

std::optional<std::string> MailboxTable::try_pop(std::string_view name) {
  const auto found = mailboxes_.find(name);
  if (found == mailboxes_.end() || found->second.entries.empty()) return std::nullopt;
  Mailbox& mailbox = found->second;
  const Blob value = std::move(mailbox.entries.front());
  mailbox.entries.pop_front();
  ++mailbox.base;
  return value.use_count() == 1 ? std::move(*value) : *value;
}

void MailboxTable::read(ReaderId reader, std::string_view name, std::uint64_t first, bool lets_go,
                        Deliveries& deliveries) {
  Mailbox& mailbox = mailbox_of(name);
  if (lets_go) {
    while (!mailbox.entries.empty() && mailbox.base < first) {
      mailbox.entries.pop_front();
      ++mailbox.base;
    }
  }
  const auto wanted = std::max(first, mailbox.base);
  if (wanted - mailbox.base < mailbox.entries.size()) {
    deliveries.push_back({reader, wanted, mailbox.entries[wanted - mailbox.base]});
    return;
  }
  mailbox.readers.push_back({reader, first});
  waiting_.insert_or_assign(reader, std::string(name));
}

void MailboxTable::cancel(ReaderId reader) {
  const auto found = waiting_.find(reader);
  if (found == waiting_.end()) return;
  std::erase_if(mailbox_of(found->second).readers, [&](const Reader& waiting) { return waiting.id == reader; });
  waiting_.erase(found);
}

void MailboxTable::watch(const std::string& mailbox) {
  watched_.insert(mailbox);
  if (const auto found = mailboxes_.find(mailbox); found != mailboxes_.end() && !found->second.entries.empty()) {
    filled_.push_back(mailbox);
  }
}

}  // namespace tensorplay::store
