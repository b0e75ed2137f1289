#pragma once

#include "rendezvous/discovery/discovery.hpp"
#include "rendezvous/discovery/greeting.hpp"
#include "rendezvous/discovery/host_file.hpp"
#include "rendezvous/discovery/interrupt.hpp"

#include <chrono>
#include <memory>

namespace tensorplay::rendezvous {

/// What is known of the host that a file names.
struct RecordedHost {
  Answer answer = Answer::kPending;      ///< Of its store.
  bool is_refused = false;               ///< Its machine says that nobody listens.
  std::optional<bool> is_locked;         ///< Its file.
  bool is_gone = false;                  ///< Its process is certainly not there any more.
  bool is_lost = false;                  ///< This agent has spoken to it before, and lost it.
  std::chrono::milliseconds failing{0};  ///< For how long it has not answered.
  std::chrono::milliseconds total{0};    ///< The whole time there is.
};

/// Whether the file may be succeeded by one of the next epoch: nobody may host while the old host may yet live, and
/// nobody shall wait for ever for one that is dead. A core without I/O.
bool may_be_succeeded(const RecordedHost& host);

/// Finds the store by a folder that all nodes share: the first to leave word there hosts. Looks again ever more rarely
/// up to twice a second, since nothing tells of another machine's files.
/// The host's word stands as long as this object, and goes with it.
class FileSearch final : public Discovery {
 public:
  explicit FileSearch(DiscoveryOptions options);

  MeetingPlace find(const LastSeen& last, distributed::Deadline deadline,
                    const std::function<void(const std::string&)>& say) override;
  void cancel() override { interrupt_.set(); }

 private:
  DiscoveryOptions options_;
  Interrupt interrupt_;
  std::unique_ptr<HostFolder> folder_;
};

}  // namespace tensorplay::rendezvous
