#include "rendezvous/leader.hpp"

#include "runtime/base/log.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <sstream>

namespace tensorplay::rendezvous {
namespace {

/// What is known of an agent that is lost, from its will and how the server says it came to that.
Lost lost_by(const Will& will, const std::string& trailer, TimePoint now) {
  std::istringstream words(trailer);
  std::string word;
  std::string cause;
  long age_ms = 0;
  words >> word >> cause >> age_ms;
  if (word != "lost") throw distributed::InvalidArgument("message: a will that the store has not added to");
  const auto in_seconds = [](double s) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(s));
  };
  if (cause == "declared") return {will.agent, "its guardian says that its agent is dead", now, true};
  const auto heard = now - std::chrono::milliseconds(age_ms);
  const auto gone = heard + in_seconds(will.keep_alive_seconds + will.kill_seconds);
  if (cause == "closed") return {will.agent, "its connection closed and did not come back", gone, false};
  return {will.agent, "no answer for " + std::to_string((age_ms + 500) / 1000) + " s", gone, false};
}

/// The address the server saw a report come from is one its sender has, whatever the sender knows of itself.
void add_address(Joined& joined, const std::string& trailer) {
  constexpr std::string_view kFrom = "from ";
  if (!trailer.starts_with(kFrom)) return;
  const auto address = trailer.substr(kFrom.size());
  auto& known = joined.addresses;
  if (std::find(known.begin(), known.end(), address) == known.end()) known.push_back(address);
}

}  // namespace

Leader::Leader(asio::io_context& loop, Mailbox& mailbox, MembershipOptions options,
               std::function<void(const Note&)> on_note)
    : mailbox_(mailbox),
      membership_(std::move(options)),
      on_note_(std::move(on_note)),
      timer_(loop),
      inbox_(loop, mailbox, kInbox, [this](const std::string& text) { read(text); }) {}

void Leader::read(const std::string& text) {
  try {
    const auto line = text.rfind('\n');  // the server's own; nothing that came over the network stands behind it
    const auto trailer = line == text.npos ? std::string() : text.substr(line + 1);
    std::visit([this, &trailer](auto&& report) { read(std::move(report), trailer); },
               decode_report(text.substr(0, line)));
  } catch (const distributed::InvalidArgument& e) {
    // The network may push to the inbox: nonsense from there costs a line, not the job.
    base::log::write_limited(base::log::Level::kWarning, "inbox", std::string("a report was ignored: ") + e.what());
  }
}

template <class R>
void Leader::read(R report, const std::string& trailer) {
  if constexpr (std::is_same_v<R, Will>) {
    apply(Event(lost_by(report, trailer, std::chrono::steady_clock::now())));
  } else {
    if constexpr (std::is_same_v<R, Joined>) add_address(report, trailer);
    apply(Event(std::move(report)));
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
