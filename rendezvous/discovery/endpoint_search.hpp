#pragma once

#include "rendezvous/discovery/discovery.hpp"
#include "rendezvous/discovery/host_choice.hpp"
#include "rendezvous/discovery/interrupt.hpp"

#include <functional>

namespace tensorplay::rendezvous {

/// Finds the store at one of the listed endpoints, or becomes its host there: static, c10d, and a waiting host's look
/// at the other places, which differ in the rule by which is chosen. All endpoints are looked at side by side, again
/// and again, ever more rarely up to once a second.
class EndpointSearch final : public Discovery {
 public:
  using Rule = Choice (*)(const SearchView&);

  /// Throws DistStoreError for endpoints that several nodes cannot meet at.
  EndpointSearch(DiscoveryOptions options, Rule rule);

  MeetingPlace find(const LastSeen& last, distributed::Deadline deadline,
                    const std::function<void(const std::string&)>& say) override;
  void cancel() override { interrupt_.set(); }

 private:
  DiscoveryOptions options_;
  Rule rule_;
  Interrupt interrupt_;
};

/// "12.3 s", "600 s".
std::string elapsed_text(std::chrono::steady_clock::duration time);

}  // namespace tensorplay::rendezvous
