#include "agent/guardian_wire.hpp"

#include "runtime/store/wire_codec.hpp"

namespace tensorplay::agent {
namespace {

using store::put_bytes;
using store::put_u32;
using store::put_u64;
using store::put_u8;

enum class Kind : std::uint8_t { kResult, kLease, kHeartbeat };

void put(std::string& out, const AgentResult& result) {
  put_u8(out, static_cast<std::uint8_t>(Kind::kResult));
  put_u32(out, static_cast<std::uint32_t>(result.exit_code));
  put_u32(out, static_cast<std::uint32_t>(result.stop_signal));
  put_u8(out, result.leaves_daemons ? 1 : 0);
}

void put(std::string& out, const AgentLease& lease) {
  put_u8(out, static_cast<std::uint8_t>(Kind::kLease));
  for (const auto* text : {&lease.host, &lease.run_id, &lease.user, &lease.agent}) put_bytes(out, *text);
  put_u32(out, lease.port);
  put_u64(out, lease.token);
  put_u64(out, lease.epoch);
  put_u64(out, static_cast<std::uint64_t>(lease.keep_alive.count()));
}

void put(std::string& out, const Heartbeat&) {
  put_u8(out, static_cast<std::uint8_t>(Kind::kHeartbeat));
}

/// Takes what it is asked for from the front; once something was missing, it is broken for good.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : bytes_(bytes) {}
  std::string_view take(std::size_t size) {
    is_broken_ = is_broken_ || bytes_.size() < size;
    if (is_broken_) return kZeros.substr(0, std::min(size, kZeros.size()));
    const auto taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  std::uint8_t u8() { return static_cast<std::uint8_t>(take(1)[0]); }
  std::uint32_t u32() { return store::get_u32(take(4).data()); }
  std::uint64_t u64() { return store::get_u64(take(8).data()); }
  std::string text() {
    const auto size = u64();
    return is_broken_ || size > bytes_.size() ? (is_broken_ = true, std::string()) : std::string(take(size));
  }
  bool is_done() const { return !is_broken_ && bytes_.empty(); }

 private:
  static constexpr std::string_view kZeros{"\0\0\0\0\0\0\0\0", 8};
  std::string_view bytes_;
  bool is_broken_ = false;
};

}  // namespace

std::string encode(const AgentMessage& message) {
  std::string bytes;
  std::visit([&bytes](const auto& m) { put(bytes, m); }, message);
  return bytes;
}

std::optional<AgentMessage> decode_agent_message(std::string_view bytes) {
  Taker in(bytes);
  AgentMessage message = Heartbeat{};
  switch (static_cast<Kind>(in.u8())) {
    case Kind::kResult: {
      AgentResult result;
      result.exit_code = static_cast<int>(in.u32());
      result.stop_signal = static_cast<int>(in.u32());
      result.leaves_daemons = in.u8() != 0;
      message = result;
      break;
    }
    case Kind::kLease: {
      AgentLease lease;
      for (auto* text : {&lease.host, &lease.run_id, &lease.user, &lease.agent}) *text = in.text();
      lease.port = static_cast<std::uint16_t>(in.u32());
      lease.token = in.u64();
      lease.epoch = in.u64();
      lease.keep_alive = std::chrono::milliseconds(in.u64());
      message = std::move(lease);
      break;
    }
    case Kind::kHeartbeat:
      break;
    default:
      return std::nullopt;
  }
  if (!in.is_done()) return std::nullopt;
  return message;
}

}  // namespace tensorplay::agent
