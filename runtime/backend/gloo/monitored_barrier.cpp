#include "runtime/backend/gloo/monitored_barrier.hpp"

#include "runtime/backend/gloo/arrival.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <memory>
#include <vector>

namespace tensorplay::distributed {
namespace {

constexpr std::chrono::milliseconds kVerdictSlack{1000};
constexpr std::size_t kVerdictBytes = 4096;
const std::string kWell = "all are here";

std::string sentence(int rank, std::chrono::milliseconds timeout) {
  return "Rank " + std::to_string(rank) + " failed to pass monitoredBarrier in " + std::to_string(timeout.count()) +
         " ms";
}

std::string original(const Mesh& mesh, int rank, const std::string& text) {
  return "\n Original exception:\n" + text + " [" + mesh.name_of(rank) + ", " + mesh.address_of(rank) + "]";
}

}  // namespace

MonitoredBarrier::MonitoredBarrier(Operation& operation, std::chrono::milliseconds timeout)
    : operation_(operation), timeout_(timeout) {}

void MonitoredBarrier::run(bool wait_all_ranks) {
  if (const auto why = operation_.mesh.reason_unusable(); !why.empty()) {
    throw DistBackendError(operation_.what + ": the group is unusable: " + why);
  }
  if (operation_.mesh.size() == 1) return;
  if (operation_.mesh.rank() == 0) {
    lead(wait_all_ranks);
  } else {
    follow();
  }
}

void MonitoredBarrier::end(const std::string& verdict) {
  operation_.mesh.abort(operation_.what + ": " + verdict);
  throw DistBackendError(operation_.what + ": " + verdict);
}

void MonitoredBarrier::lead(bool wait_all_ranks) {
  Mesh& mesh = operation_.mesh;
  const auto context = mesh.context();
  const auto slot = operation_.first_slot;
  std::vector<std::unique_ptr<Arrival>> greetings;
  std::vector<std::unique_ptr<Arrival>> arrivals;
  Alarm alarm(operation_.deadline);
  for (const int peer : mesh.peers()) {
    greetings.push_back(std::make_unique<Arrival>(*context, 1));
    arrivals.push_back(std::make_unique<Arrival>(*context, 1));
    arrivals.back()->receive(peer, slot + 1);
    greetings.back()->send(peer, slot, "g");
  }

  std::vector<int> missing;
  std::vector<int> here;
  std::string reason;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const int peer = mesh.peers()[i];
    const bool gives_up = !missing.empty() && !wait_all_ranks;  // Then those who are here are still told.
    const auto error = gives_up ? arrivals[i]->look() : arrivals[i]->wait(alarm);
    if (error.empty()) {
      here.push_back(peer);
    } else if (!gives_up) {
      missing.push_back(peer);
      if (reason.empty()) reason = original(mesh, peer, error);
    }
  }
  std::string verdict = kWell;
  if (!missing.empty()) {
    verdict = sentence(missing.front(), timeout_);
    if (missing.size() > 1) {
      verdict += "\nRanks";
      for (std::size_t i = 0; i < missing.size(); ++i) verdict += (i > 0 ? ", " : " ") + std::to_string(missing[i]);
      verdict += " failed to pass monitoredBarrier in " + std::to_string(timeout_.count()) + " ms";
    }
    verdict += reason;
  }

  Alarm end_of_verdict(Deadline::after(kVerdictSlack));
  std::vector<std::unique_ptr<Arrival>> messages;
  for (const int peer : here) {
    messages.push_back(std::make_unique<Arrival>(*context, kVerdictBytes));
    messages.back()->send(peer, slot + 2, verdict);
  }
  for (const int peer : here) {  // Heard by all before anything is closed.
    Arrival heard(*context, 1);
    heard.receive(peer, slot + 3);
    heard.wait(end_of_verdict);
  }
  if (!missing.empty()) end(verdict);
}

void MonitoredBarrier::follow() {
  Mesh& mesh = operation_.mesh;
  const auto context = mesh.context();
  const auto slot = operation_.first_slot;
  Alarm alarm(operation_.deadline);
  Arrival greeting(*context, 1);
  Arrival verdict(*context, kVerdictBytes);
  Arrival here(*context, 1);
  greeting.receive(0, slot);
  verdict.receive(0, slot + 2);
  here.send(0, slot + 1, "h");
  if (const auto error = greeting.wait(alarm); !error.empty()) {
    end(sentence(0, timeout_) + original(mesh, 0, error));
  }
  Alarm later(Deadline::after(timeout_ + kVerdictSlack));
  if (const auto error = verdict.wait(later); !error.empty()) {
    end(sentence(0, timeout_) + original(mesh, 0, error));
  }
  Arrival heard(*context, 1);
  heard.send(0, slot + 3, "h");
  heard.wait_sent(later);
  if (verdict.text() != kWell) end(verdict.text());
}

}  // namespace tensorplay::distributed
