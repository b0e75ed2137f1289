#include "runtime/backend/gloo/transfers.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <utility>

namespace tensorplay::distributed {
namespace {

constexpr std::size_t kMostThreads = 32;

}  // namespace

struct Transfers::Transfer {
  Transfer(Mesh& mesh, Kind transfer_kind, const Tensor& moved, std::string what, int tag,
           std::chrono::milliseconds limit)
      : kind(transfer_kind),
        tensor(moved),
        packed(moved),
        operation{mesh, std::move(what), slot::kPointToPoint | static_cast<std::uint64_t>(tag), limit,
                  Deadline::after(limit)} {}

  void post(int peer) {
    step.emplace(operation, Step::Sigpipe::kCallerGuards);
    if (kind == Kind::kSend) {
      step->send(peer, packed.data(), packed.bytes());
    } else if (peer == Mesh::kAnyPeer) {
      step->recv_from_any(packed.data(), packed.bytes());
    } else {
      step->recv(peer, packed.data(), packed.bytes());
    }
  }

  /// Whether it is the caller's to await.
  bool claim() noexcept { return !is_claimed.exchange(true); }

  void await(Work& work) {
    const SigpipeGuard guard;
    try {
      step->wait();
      if (kind == Kind::kReceive) {
        packed.unpack();
        work.set_source_rank(step->source());
      }
      work.finish({tensor});
    } catch (...) {
      work.fail(std::current_exception());
    }
    step.reset();
  }

  const Kind kind;
  const Tensor tensor;
  Packed packed;
  Operation operation;
  std::optional<Step> step;
  std::atomic<bool> is_claimed{false};
  std::shared_ptr<Work> work;
};

class Transfers::TransferWork final : public Work {
 public:
  TransferWork(std::string name, std::uint64_t sequence, Transfers& transfers)
      : Work(std::move(name), sequence), transfers_(transfers) {}

  void set_transfer(const std::shared_ptr<Transfer>& transfer) { transfer_ = transfer; }

  void wait(std::chrono::milliseconds timeout) override {
    if (timeout.count() <= 0) {
      if (const auto transfer = transfer_.lock(); transfer && transfer->claim()) {
        transfer->await(*this);
        transfers_.end_one();
      }
    }
    Work::wait(timeout);
  }

 private:
  Transfers& transfers_;  // Alive while a transfer is: stop() has ended them all.
  std::weak_ptr<Transfer> transfer_;
};

Transfers::~Transfers() {
  stop();
}

std::shared_ptr<Work> Transfers::start(Kind kind, const Tensor& tensor, int peer, int tag,
                                       std::chrono::milliseconds limit, bool async_op) {
  const std::string name = kind == Kind::kSend ? "send" : "recv";
  const auto number = started_++;
  const auto transfer = std::make_shared<Transfer>(
      mesh_, kind, tensor, name + " #" + std::to_string(number) + " with tag " + std::to_string(tag), tag, limit);
  const auto work = std::make_shared<TransferWork>(name, number, *this);
  {
    const SigpipeGuard guard;
    try {
      transfer->post(peer);
    } catch (...) {
      if (!async_op) throw;
      work->fail(std::current_exception());
      return work;
    }
  }
  if (!async_op) {
    transfer->await(*work);
    work->Work::wait();
    return work;
  }
  transfer->work = work;
  work->set_transfer(transfer);
  const std::lock_guard lock(mutex_);
  if (is_ending_) throw DistBackendError(name + ": the group was destroyed");
  ++on_their_way_;
  queue_.push_back(transfer);
  if (idle_ < queue_.size() && threads_.size() < kMostThreads) threads_.emplace_back([this] { run(); });
  changed_.notify_all();
  return work;
}

void Transfers::end_one() {
  const std::lock_guard lock(mutex_);
  --on_their_way_;
  changed_.notify_all();
}

void Transfers::run() {
  while (true) {
    std::shared_ptr<Transfer> next;
    {
      std::unique_lock lock(mutex_);
      ++idle_;
      changed_.wait(lock, [&] { return !queue_.empty() || is_ending_; });
      --idle_;
      if (queue_.empty()) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    if (!next->claim()) continue;
    const auto work = std::exchange(next->work, nullptr);
    next->await(*work);
    end_one();
  }
}

bool Transfers::drain(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline.when(), [&] { return on_their_way_ == 0; });
}

void Transfers::stop() {
  std::vector<std::thread> ended;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    ended.swap(threads_);
    changed_.notify_all();
  }
  for (auto& thread : ended) thread.join();
  std::unique_lock lock(mutex_);  // Callers that await a transfer themselves: the closed mesh has ended their waits.
  changed_.wait(lock, [&] { return on_their_way_ == 0; });
}

}  // namespace tensorplay::distributed
