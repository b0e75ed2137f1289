#include "rendezvous/leader.hpp"

#include "runtime/base/log.hpp"
#include "tensorplay/distributed/errors.hpp"

namespace tensorplay::rendezvous {

Leader::Leader(asio::io_context& loop, Mailbox& mailbox, MembershipOptions options,
               std::function<void(const Note&)> on_note)
    : mailbox_(mailbox),
      membership_(options),
      on_note_(std::move(on_note)),
      timer_(loop),
      inbox_(loop, mailbox, kInbox, [this](const std::string& text) { read(text); }) {}

void Leader::read(const std::string& text) {
  try {
    std::visit([this](auto&& report) { apply(Event(std::move(report))); }, decode_report(text));
  } catch (const distributed::InvalidArgument& e) {
    // The network may push to the inbox: nonsense from there costs a line, not the job.
    base::log::write_limited(base::log::Level::kWarning, "inbox", std::string("a report was ignored: ") + e.what());
  }
}

void Leader::apply(const Event& event) {
  const auto effects = membership_.apply(event, std::chrono::steady_clock::now());
  for (const auto& note : effects.notes) on_note_(note);
  for (const auto& [agents, order] : effects.orders) {
    const auto text = encode(order);
    for (const auto& agent : agents) mailbox_.post(orders_queue(agent), text);
  }
  arm();
}

void Leader::arm() {
  const auto tick = membership_.next_tick();
  if (tick == armed_for_) return;
  armed_for_ = tick;
  timer_.cancel();
  if (!tick) return;
  timer_.expires_at(*tick);
  timer_.async_wait([this, due = *tick](const std::error_code& error) {
    if (error || armed_for_ != due) return;
    armed_for_.reset();
    apply(Tick{});
  });
}

}  // namespace tensorplay::rendezvous
