#include "runtime/store/store_client.hpp"

#include "runtime/base/log.hpp"
#include "runtime/store/wire_codec.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <algorithm>
#include <thread>
#include <unistd.h>

namespace tensorplay::store {
namespace {

using distributed::DistNetworkError;
using distributed::DistStoreError;
using distributed::TimeoutError;
using namespace std::chrono_literals;

constexpr auto kFirstPause = 20ms;
constexpr auto kLastPause = 1s;

void check_key(std::string_view key) {
  if (key.size() <= kMaxKeyBytes) return;
  throw DistStoreError("a key of " + std::to_string(key.size()) + " bytes (" + std::string(key.substr(0, 40)) +
                       "...): servers take at most " + std::to_string(kMaxKeyBytes));
}

void check_value(std::string_view key, std::string_view value) {
  check_key(key);
  if (value.size() <= kMaxPayloadBytes) return;
  throw DistStoreError("a value of " + std::to_string(value.size()) + " bytes for key " +
                       std::string(key.substr(0, 200)) + ": servers take at most " + std::to_string(kMaxPayloadBytes) +
                       "; split it over several keys");
}

void check_keys(const std::vector<std::string>& keys) {
  if (keys.size() > kMaxKeyCount) {
    throw DistStoreError(std::to_string(keys.size()) + " keys in one request: servers take at most " +
                         std::to_string(kMaxKeyCount));
  }
  for (const auto& key : keys) check_key(key);
}

std::string_view first_of(const std::vector<std::string>& keys) {
  return keys.empty() ? std::string_view() : std::string_view(keys.front());
}

/// What throws when a peer answers, but not as a store does.
class NotAStoreError : public DistNetworkError {
 public:
  using DistNetworkError::DistNetworkError;
};

}  // namespace

StoreClient::StoreClient(const std::string& host, std::uint16_t port, Deadline deadline,
                         std::chrono::milliseconds answer_time)
    : connection_(host, port), answer_time_(answer_time) {
  connect(deadline);
}

void StoreClient::connect(Deadline deadline) {
  std::chrono::milliseconds pause = kFirstPause;
  while (true) {
    connection_.open(deadline);
    try {
      shake_hands(deadline);
      return;
    } catch (const NotAStoreError&) {
      throw;
    } catch (const TimeoutError&) {
      throw;
    } catch (const DistNetworkError& error) {
      // Closed on us: a server of torch 2.4, which knows no ping, or one that is just starting or ending.
      has_ping_ = !has_ping_;
      base::log::debug([&] { return std::string(error.what()) + "; connecting again"; });
      if (deadline.has_passed()) throw;
    }
    if (has_ping_) {  // both ways have been tried
      std::this_thread::sleep_for(std::min<Deadline::Clock::duration>(pause, deadline.remaining()));
      pause = std::min<std::chrono::milliseconds>(pause * 2, kLastPause);
    }
  }
}

void StoreClient::shake_hands(Deadline deadline) {
  has_extensions_ = false;
  const auto nonce = static_cast<std::uint32_t>(getpid());
  std::string& out = connection_.begin("first ping", "");
  // One segment: torch's server must not see the first byte without the four that follow it.
  encode_validate(out);
  if (has_ping_) encode_ping(out, nonce);
  encode_check(out, {std::string(kExtensionProbeKey)});
  connection_.send(deadline);
  if (has_ping_) {
    const std::uint32_t echo = connection_.read_u32(deadline);
    if (echo != nonce) {
      std::string start;
      put_u32(start, echo);
      if (std::all_of(start.begin(), start.end(), [](char c) { return c >= ' ' && c <= '~'; })) {
        throw NotAStoreError(connection_.endpoint() + " is held by something that is not a store (it sent \"" + start +
                             connection_.printable_rest() + "\")");
      }
      throw NotAStoreError(connection_.endpoint() +
                           " is held by something that is not a store (its answer to a ping of " +
                           std::to_string(nonce) + " was " + std::to_string(echo) + ")");
    }
  }
  const std::uint8_t probe = connection_.read_u8(deadline);
  if (probe != kReady && probe != kNotReady) {
    throw NotAStoreError(connection_.endpoint() + " is held by something that is not a store (it answered a check by " +
                         std::to_string(probe) + ")");
  }
  if (probe == kReady) has_extensions_ = say_hello(deadline);
}

bool StoreClient::say_hello(Deadline deadline) {
  encode_hello(connection_.begin("hello", ""), Hello{});
  connection_.send(deadline);
  const auto status = static_cast<HelloStatus>(connection_.read_u8(deadline));
  HelloReply reply;
  reply.version = connection_.read_u32(deadline);
  reply.run_id = connection_.read_bytes(deadline);
  reply.user = connection_.read_bytes(deadline);
  reply.epoch = connection_.read_u64(deadline);
  if (status == HelloStatus::kWelcome) return true;
  throw NotAStoreError(connection_.endpoint() + ": the store refuses this client (status " +
                       std::to_string(static_cast<int>(status)) + ", its version is " + std::to_string(reply.version) +
                       ", ours " + std::to_string(kExtensionVersion) + ", its run " + reply.run_id + " of user " +
                       reply.user + ")");
}

// ---- Answered at once ---------------------------------------------------------------------------------------------

void StoreClient::set(std::string_view key, std::string_view value, Deadline deadline) {
  check_value(key, value);
  encode_set(connection_.begin("set", key), key, value);
  connection_.send(deadline);
}

std::int64_t StoreClient::add(std::string_view key, std::int64_t delta, Deadline deadline) {
  check_key(key);
  encode_add(connection_.begin("add", key), key, delta);
  connection_.send(deadline);
  return connection_.read_i64(deadline);
}

std::string StoreClient::compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                                     Deadline deadline) {
  check_value(key, expected);
  check_value(key, desired);
  encode_compare_set(connection_.begin("compare_set", key), key, expected, desired);
  connection_.send(deadline);
  return connection_.read_bytes(deadline);
}

bool StoreClient::check(const std::vector<std::string>& keys, Deadline deadline) {
  check_keys(keys);
  encode_check(connection_.begin("check", first_of(keys)), keys);
  connection_.send(deadline);
  const std::uint8_t answer = connection_.read_u8(deadline);
  if (answer != kReady && answer != kNotReady) connection_.fail("answered by " + std::to_string(answer));
  return answer == kReady;
}

bool StoreClient::delete_key(std::string_view key, Deadline deadline) {
  check_key(key);
  encode_delete_key(connection_.begin("delete_key", key), key);
  connection_.send(deadline);
  return connection_.read_i64(deadline) > 0;
}

std::int64_t StoreClient::num_keys(Deadline deadline) {
  encode_get_num_keys(connection_.begin("num_keys", ""));
  connection_.send(deadline);
  return connection_.read_i64(deadline);
}

void StoreClient::append(std::string_view key, std::string_view value, Deadline deadline) {
  check_value(key, value);
  encode_append(connection_.begin("append", key), key, value);
  connection_.send(deadline);
}

void StoreClient::multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values,
                            Deadline deadline) {
  check_keys(keys);
  for (std::size_t i = 0; i < std::min(keys.size(), values.size()); ++i) check_value(keys[i], values[i]);
  encode_multi_set(connection_.begin("multi_set", first_of(keys)), keys, values);
  connection_.send(deadline);
}

void StoreClient::queue_push(std::string_view key, std::string_view value, Deadline deadline) {
  check_value(key, value);
  encode_queue_push(connection_.begin("queue_push", key), key, value);
  connection_.send(deadline);
}

std::optional<std::string> StoreClient::try_queue_pop(std::string_view key, Deadline deadline) {
  check_key(key);
  encode_queue_pop(connection_.begin("queue_pop", key), key);
  connection_.send(deadline);
  if (connection_.read_i64(deadline) <= 0) return std::nullopt;
  return connection_.read_bytes(deadline);
}

std::int64_t StoreClient::queue_len(std::string_view key, Deadline deadline) {
  check_key(key);
  encode_queue_len(connection_.begin("queue_len", key), key);
  connection_.send(deadline);
  return connection_.read_i64(deadline);
}

std::vector<std::string> StoreClient::list_keys(Deadline deadline) {
  encode_list_keys(connection_.begin("list_keys", ""));
  connection_.send(deadline);
  const std::int64_t count = connection_.read_i64(deadline);
  if (count < 0) connection_.fail("answered that it has " + std::to_string(count) + " keys");
  std::vector<std::string> keys;
  for (std::int64_t i = 0; i < count; ++i) keys.push_back(connection_.read_bytes(deadline));
  return keys;
}

std::chrono::nanoseconds StoreClient::ping(Deadline deadline) {
  const auto start = Deadline::Clock::now();
  if (!has_ping_) {
    check({}, deadline);
    return Deadline::Clock::now() - start;
  }
  const auto nonce = static_cast<std::uint32_t>(getpid());
  encode_ping(connection_.begin("ping", ""), nonce);
  connection_.send(deadline);
  if (connection_.read_u32(deadline) != nonce) connection_.fail("answered by another number than was sent");
  return Deadline::Clock::now() - start;
}

// ---- Waiting ------------------------------------------------------------------------------------------------------

/// Waits for the answer to a request that waits on the server, reads it with `read_rest`, and returns true; at the
/// deadline cancels and returns false. If the answer crossed the cancellation it counts.
template <typename Read>
bool StoreClient::finish_wait(Deadline deadline, Read read_rest) {
  const bool is_cancelled = !connection_.has_answer_by(deadline);
  const auto answered_by = answer_deadline();
  if (is_cancelled) {
    std::string cancel;
    encode_cancel_wait(cancel);
    connection_.send_more(cancel, answered_by);
  }
  const std::uint8_t answer = connection_.read_u8(answered_by);
  if (answer == kWaitCanceled && is_cancelled) return false;
  if (answer != kStopWaiting)
    connection_.fail("answered by " + std::to_string(answer) + ", not by the end of the wait");
  read_rest(answered_by);
  if (is_cancelled && connection_.read_u8(answered_by) != kWaitCanceled) {
    connection_.fail("the cancellation was not answered as one");
  }
  return true;
}

bool StoreClient::finish_wait(Deadline deadline) {
  return finish_wait(deadline, [](Deadline) {});
}

/// Sends the request that was begun, whose answer is one value, and waits for it.
std::optional<std::string> StoreClient::finish_wait_for_value(Deadline deadline) {
  connection_.send(answer_deadline());
  std::optional<std::string> value;
  finish_wait(deadline, [&](Deadline answered_by) { value = connection_.read_bytes(answered_by); });
  return value;
}

bool StoreClient::wait(const std::vector<std::string>& keys, Deadline deadline) {
  check_keys(keys);
  encode_wait(connection_.begin("wait", first_of(keys)), keys);
  connection_.send(answer_deadline());
  return finish_wait(deadline);
}

std::optional<std::string> StoreClient::get(std::string_view key, Deadline deadline) {
  check_key(key);
  if (has_extensions_) {
    encode_get_wait(connection_.begin("get", key), key);
    return finish_wait_for_value(deadline);
  }
  if (!wait({std::string(key)}, deadline)) return std::nullopt;
  const auto answered_by = answer_deadline();
  encode_get(connection_.begin("get", key), key);
  connection_.send(answered_by);
  return connection_.read_bytes(answered_by);
}

std::optional<std::vector<std::string>> StoreClient::multi_get(const std::vector<std::string>& keys,
                                                               Deadline deadline) {
  check_keys(keys);
  std::vector<std::string> values;
  values.reserve(keys.size());
  const auto read_values = [&](Deadline answered_by) {
    for (std::size_t i = 0; i < keys.size(); ++i) values.push_back(connection_.read_bytes(answered_by));
  };
  if (has_extensions_) {
    encode_multi_get_wait(connection_.begin("multi_get", first_of(keys)), keys);
    connection_.send(answer_deadline());
    if (!finish_wait(deadline, read_values)) return std::nullopt;
    return values;
  }
  if (!wait(keys, deadline)) return std::nullopt;
  const auto answered_by = answer_deadline();
  encode_multi_get(connection_.begin("multi_get", first_of(keys)), keys);
  connection_.send(answered_by);
  read_values(answered_by);
  return values;
}

std::optional<std::string> StoreClient::queue_pop(std::string_view key, Deadline deadline) {
  check_key(key);
  if (has_extensions_) {
    encode_queue_pop_wait(connection_.begin("queue_pop", key), key);
    return finish_wait_for_value(deadline);
  }
  while (wait({std::string(key)}, deadline)) {
    // Another consumer may come between the wait and the pop: wait again rather than give up.
    if (auto value = try_queue_pop(key, answer_deadline())) return value;
  }
  return std::nullopt;
}

bool StoreClient::barrier(std::string_view key, std::int64_t world_size, Deadline deadline) {
  check_key(key);
  encode_barrier(connection_.begin("barrier", key), key, world_size);
  connection_.send(answer_deadline());
  return finish_wait(deadline);
}

}  // namespace tensorplay::store
