#include "rendezvous/messages.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

namespace tensorplay::rendezvous {
namespace {

using distributed::InvalidArgument;
using nlohmann::json;

// One list of fields for each message, walked by the Writer and by the Reader, so that the two cannot drift apart.

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, WorkerFailure> {
  a("rank", m.rank);
  a("local_rank", m.local_rank);
  a("pid", m.pid);
  a("host", m.host);
  a("exit_code", m.exit_code);
  a("signal", m.signal);
  a("stopped_by_us", m.stopped_by_us);
  a("dumped_core", m.dumped_core);
  a("out_of_memory", m.out_of_memory);
  a("is_startup_failure", m.is_startup_failure);
  a("ended_at", m.ended_at);
  a("thrown_at", m.thrown_at);
  a("runtime_seconds", m.runtime_seconds);
  a("message", m.message);
  a("traceback", m.traceback);
  a("error_file", m.error_file);
  a("log_file", m.log_file);
  a("last_lines", m.last_lines);
  a("followed_from", m.followed_from);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, PastWorld> {
  a("epoch", m.epoch);
  a("round", m.round);
  a("restart_count", m.restart_count);
  a("group_rank", m.group_rank);
  a("group_world_size", m.group_world_size);
  a("recent_restarts", m.recent_restarts);
  a("fruitless_restarts", m.fruitless_restarts);
  a("is_confirmed", m.is_confirmed);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, Joined> {
  a("agent", m.agent);
  a("host", m.host);
  a("addresses", m.addresses);
  a("nproc", m.nproc);
  a("role", m.role);
  a("rank_hint", m.rank_hint);
  a("is_store_host", m.is_store_host);
  a("port", m.port);
  a("past", m.past);
  a("seen_epoch", m.seen_epoch);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, Started> {
  a("agent", m.agent);
  a("round", m.round);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, Stopped> {
  a("agent", m.agent);
  a("round", m.round);
  a("failures", m.failures);
  a("left_unkillable", m.left_unkillable);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, Failed> {
  a("agent", m.agent);
  a("round", m.round);
  a("failure", m.failure);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, Succeeded> {
  a("agent", m.agent);
  a("round", m.round);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, Leaving> {
  a("agent", m.agent);
  a("why", m.why);
  a("workers_gone", m.workers_gone);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, Will> {
  a("agent", m.agent);
  a("keep_alive_seconds", m.keep_alive_seconds);
  a("kill_seconds", m.kill_seconds);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, StartOrder> {
  a("round", m.round);
  a("restart_count", m.restart_count);
  a("world_size", m.world_size);
  a("group_rank", m.group_rank);
  a("group_world_size", m.group_world_size);
  a("first_rank", m.first_rank);
  a("first_role_rank", m.first_role_rank);
  a("role_world_size", m.role_world_size);
  a("store_generation", m.store_generation);
  a("master_addr", m.master_addr);
  a("master_port", m.master_port);
  a("serves_workers_store", m.serves_workers_store);
  a("member_addresses", m.member_addresses);
  a("epoch", m.epoch);
  a("recent_restarts", m.recent_restarts);
  a("fruitless_restarts", m.fruitless_restarts);
  a("wants_confirmation", m.wants_confirmation);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, StopOrder> {
  a("round", m.round);
  a("why", m.why);
  a("at_once", m.at_once);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, FinishOrder> {
  a("exit_code", m.exit_code);
  a("why", m.why);
  a("root_cause", m.root_cause);
  a("failures", m.failures);
  a("more_failures", m.more_failures);
  a("round", m.round);
  a("restart_count", m.restart_count);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, NewsOrder> {
  a("text", m.text);
  a("is_status", m.is_status);
  a("is_notable", m.is_notable);
  a("waited_seconds", m.waited_seconds);
  a("limit_seconds", m.limit_seconds);
}

template <class Archive, class Message>
void fields(Archive& a, Message& m) requires std::is_same_v<std::remove_const_t<Message>, ConfirmedOrder> {
  a("round", m.round);
}

class Writer {
 public:
  template <class T>
  void operator()(const char* name, const T& value) {
    out_[name] = form(value);
  }
  json take() { return std::move(out_); }

  template <class T>
  static json form(const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      return std::isfinite(value) ? json(value) : json(0.0);  // JSON has no other way to carry them
    } else if constexpr (std::is_class_v<T> && requires(Writer w) { fields(w, value); }) {
      Writer nested;
      fields(nested, value);
      return nested.take();
    } else {
      return json(value);
    }
  }
  template <class T>
  static json form(const std::optional<T>& value) {
    return value ? form(*value) : json(nullptr);
  }
  template <class T>
  static json form(const std::vector<T>& values) {
    json list = json::array();
    for (const auto& value : values) list.push_back(form(value));
    return list;
  }

 private:
  json out_ = json::object();
};

class Reader {
 public:
  Reader(const json& in, std::string where) : in_(in), where_(std::move(where)) {
    if (!in_.is_object()) fail(where_, "an object");
  }
  template <class T>
  void operator()(const char* name, T& value) {
    const auto found = in_.find(name);
    if (found == in_.end()) throw InvalidArgument("message: " + where_ + "." + name + " is missing");
    read(*found, value, where_ + "." + name);
    ++taken_;
  }
  /// Every field of the message has been taken: what is left over is not ours. `extra` fields were read elsewhere.
  void finish(std::size_t extra = 0) const {
    if (taken_ + extra != in_.size()) throw InvalidArgument("message: " + where_ + " has a field nobody knows");
  }

 private:
  [[noreturn]] static void fail(const std::string& where, const char* wanted) {
    throw InvalidArgument("message: " + where + " is not " + wanted);
  }
  static void read(const json& in, bool& value, const std::string& where) {
    if (!in.is_boolean()) fail(where, "true or false");
    value = in.get<bool>();
  }
  template <class T>
  static void read(const json& in, T& value, const std::string& where) requires std::is_integral_v<T> {
    if (!in.is_number_integer()) fail(where, "an integer");
    const bool fits = in.is_number_unsigned() ? in.get<std::uint64_t>() <= std::uint64_t(std::numeric_limits<T>::max())
                                              : in.get<std::int64_t>() >= std::int64_t(std::numeric_limits<T>::min());
    if (!fits) fail(where, "an integer in range");
    value = in.get<T>();
  }
  static void read(const json& in, double& value, const std::string& where) {
    if (!in.is_number()) fail(where, "a number");
    value = in.get<double>();
  }
  static void read(const json& in, std::string& value, const std::string& where) {
    if (!in.is_string()) fail(where, "a text");
    value = in.get<std::string>();
  }
  template <class T>
  static void read(const json& in, std::optional<T>& value, const std::string& where) {
    value.reset();
    if (!in.is_null()) read(in, value.emplace(), where);
  }
  template <class T>
  static void read(const json& in, std::vector<T>& values, const std::string& where) {
    if (!in.is_array()) fail(where, "a list");
    values.clear();
    for (const auto& item : in) read(item, values.emplace_back(), where + "[" + std::to_string(values.size()) + "]");
  }
  template <class T>
  static void read(const json& in, T& value, const std::string& where) requires requires(Reader r) {
    fields(r, value);
  }
  {
    Reader nested(in, where);
    fields(nested, value);
    nested.finish();
  }

  const json& in_;
  std::string where_;
  std::size_t taken_ = 0;
};

constexpr const char* kType = "type";

const char* name_of(const Joined&) {
  return "joined";
}
const char* name_of(const Started&) {
  return "started";
}
const char* name_of(const Stopped&) {
  return "stopped";
}
const char* name_of(const Failed&) {
  return "failed";
}
const char* name_of(const Succeeded&) {
  return "succeeded";
}
const char* name_of(const Leaving&) {
  return "leaving";
}
const char* name_of(const Will&) {
  return "will";
}
const char* name_of(const StartOrder&) {
  return "start";
}
const char* name_of(const StopOrder&) {
  return "stop";
}
const char* name_of(const FinishOrder&) {
  return "finish";
}
const char* name_of(const NewsOrder&) {
  return "news";
}
const char* name_of(const ConfirmedOrder&) {
  return "confirmed";
}

template <class Variant>
std::string encode_any(const Variant& message) {
  json out = std::visit([](const auto& m) { return Writer::form(m); }, message);
  out[kType] = std::visit([](const auto& m) { return name_of(m); }, message);
  // What a worker printed need not be UTF-8; a bad byte must not keep the report from going out.
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Tries the variant's alternatives by name.
template <class Variant, std::size_t I = 0>
Variant decode_any(const json& in, const std::string& type) {
  if constexpr (I == std::variant_size_v<Variant>) {
    throw InvalidArgument("message: no message has the type '" + type + "'");
  } else {
    std::variant_alternative_t<I, Variant> message;
    if (type != name_of(message)) return decode_any<Variant, I + 1>(in, type);
    Reader reader(in, type);
    fields(reader, message);
    reader.finish(1);
    return message;
  }
}

template <class Variant>
Variant decode_text(const std::string& text) {
  const json in = json::parse(text, nullptr, false);
  if (in.is_discarded() || !in.is_object()) throw InvalidArgument("message: not a JSON object");
  const auto type = in.find(kType);
  if (type == in.end() || !type->is_string()) throw InvalidArgument("message: it has no type");
  return decode_any<Variant>(in, type->template get<std::string>());
}

constexpr char kSessionMark = '#';

}  // namespace

AgentId next_session(const AgentId& agent) {
  return process_of(agent) + kSessionMark + std::to_string(session_of(agent) + 1);
}
std::string process_of(const AgentId& agent) {
  return agent.substr(0, agent.rfind(kSessionMark));
}
std::uint64_t session_of(const AgentId& agent) {
  const auto mark = agent.rfind(kSessionMark);
  if (mark == agent.npos) return 1;
  std::uint64_t session = 1;
  std::from_chars(agent.data() + mark + 1, agent.data() + agent.size(), session);
  return session;
}

std::string encode(const Report& report) {
  return encode_any(report);
}
std::string encode(const Order& order) {
  return encode_any(order);
}
Report decode_report(const std::string& text) {
  return decode_text<Report>(text);
}
Order decode_order(const std::string& text) {
  return decode_text<Order>(text);
}

}  // namespace tensorplay::rendezvous
