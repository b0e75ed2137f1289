#include "apps/tpstore/commands.hpp"

#include "apps/tpstore/output.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <charconv>
#include <cstdio>
#include <map>

namespace tpstore {
namespace {

using tensorplay::base::HostPort;
using tensorplay::distributed::Deadline;
using tensorplay::store::StoreClient;
namespace env = tensorplay::base::env;

/// One command's surroundings.
struct Call {
  const Arguments& arguments;
  StoreClient& client;

  const std::string& word(std::size_t i) const { return arguments.operands[i]; }
  std::string key(std::size_t i) const { return wire_key(arguments, word(i)); }
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    for (const auto& operand : arguments.operands) all.push_back(wire_key(arguments, operand));
    return all;
  }
  /// Each deadline begins when the request does: connecting had one of its own.
  Deadline deadline() const { return Deadline::after(arguments.timeout); }
};

std::int64_t parse_number(const std::string& command, const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + (text.starts_with('+') ? 1 : 0), end, number);
  if (error != std::errc{} || stop != end) throw UsageError(command + ": " + text + ": not an integer of 64 bits");
  return number;
}

std::string read_stdin() {
  std::string bytes;
  std::array<char, 64 << 10> chunk{};
  while (const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), stdin)) bytes.append(chunk.data(), got);
  return bytes;
}

std::string value_of(const std::string& word) {
  return word == "-" ? read_stdin() : word;
}

int say_absent(const Call& call, const std::string& what) {
  std::fprintf(stderr, "tpstore: %s at %s\n", what.c_str(), call.client.endpoint().c_str());
  return exit_code::kAbsent;
}

int say_timed_out(const Call& call, const std::string& what) {
  std::fprintf(stderr, "tpstore: %s: wait timeout after %lldms: %s\n", call.client.endpoint().c_str(),
               static_cast<long long>(call.arguments.timeout.count()), what.c_str());
  return exit_code::kTimedOut;
}

/// The keys that do not exist, as the user spells them.
std::string missing_of(const Call& call) {
  std::string missing;
  for (std::size_t i = 0; i < call.arguments.operands.size(); ++i) {
    if (call.client.check({call.key(i)}, call.deadline())) continue;
    missing += (missing.empty() ? "" : ", ") + call.word(i);
  }
  return missing;
}

int say_no_such_key(const Call& call) {
  return say_absent(call, "no such key: " + missing_of(call));
}

int say_keys_timed_out(const Call& call) {
  const std::string missing = missing_of(call);
  return say_timed_out(call, missing.empty() ? "the last key came just now" : missing + " did not come");
}

/// The server has what was sent, so that an exit right after it loses nothing and a refusal is noticed.
int confirmed(const Call& call) {
  call.client.ping(call.deadline());
  return exit_code::kSuccess;
}

int run_ping(const Call& call) {
  const auto time = std::chrono::duration<double, std::micro>(call.client.ping(call.deadline())).count();
  const char* kind = call.client.has_extensions() ? "tprun" : call.client.has_ping() ? "torch" : "torch before 2.5";
  if (call.arguments.format == Format::kJson) {
    print_line(nlohmann::json{{"endpoint", call.client.endpoint()}, {"microseconds", time}, {"server", kind}}.dump());
  } else {
    std::printf("%s: a %s server answered after %.0f us\n", call.client.endpoint().c_str(), kind, time);
  }
  return exit_code::kSuccess;
}

int run_get(const Call& call) {
  const auto keys = call.keys();
  const bool waits = call.arguments.waits;
  if (!waits && !call.client.check(keys, call.deadline())) return say_no_such_key(call);
  const auto values = call.client.multi_get(keys, call.deadline());
  if (!values) return say_keys_timed_out(call);
  if (call.arguments.format == Format::kJson && call.arguments.command == "multi-get") {
    auto object = nlohmann::json::object();
    for (std::size_t i = 0; i < keys.size(); ++i) object[as_text(call.word(i))] = as_json((*values)[i]);
    print_line(object.dump());
    return exit_code::kSuccess;
  }
  for (const auto& value : *values) print_value(call.arguments.format, value);
  return exit_code::kSuccess;
}

int run_check(const Call& call) {
  return call.client.check(call.keys(), call.deadline()) ? exit_code::kSuccess : say_no_such_key(call);
}

int run_wait(const Call& call) {
  return call.client.wait(call.keys(), call.deadline()) ? exit_code::kSuccess : say_keys_timed_out(call);
}

int run_set(const Call& call) {
  call.client.set(call.key(0), value_of(call.word(1)), call.deadline());
  return confirmed(call);
}

int run_multi_set(const Call& call) {
  const auto& words = call.arguments.operands;
  std::vector<std::string> keys;
  std::vector<std::string> values;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    keys.push_back(call.key(i));
    values.push_back(value_of(words[i + 1]));
  }
  call.client.multi_set(keys, values, call.deadline());
  return confirmed(call);
}

int run_add(const Call& call) {
  const std::int64_t delta = call.arguments.operands.size() > 1 ? parse_number("add", call.word(1)) : 1;
  print_line(std::to_string(call.client.add(call.key(0), delta, call.deadline())));
  return exit_code::kSuccess;
}

int run_append(const Call& call) {
  call.client.append(call.key(0), value_of(call.word(1)), call.deadline());
  return confirmed(call);
}

int run_compare_set(const Call& call) {
  const std::string desired = value_of(call.word(2));
  const std::string stored = call.client.compare_set(call.key(0), call.word(1), desired, call.deadline());
  print_value(call.arguments.format, stored);
  return stored == desired ? exit_code::kSuccess : exit_code::kAbsent;
}

int run_delete(const Call& call) {
  std::string missing;
  for (std::size_t i = 0; i < call.arguments.operands.size(); ++i) {
    if (!call.client.delete_key(call.key(i), call.deadline())) missing += (missing.empty() ? "" : ", ") + call.word(i);
  }
  return missing.empty() ? exit_code::kSuccess : say_absent(call, "no such key: " + missing);
}

int run_num_keys(const Call& call) {
  print_line(std::to_string(call.client.num_keys(call.deadline())));
  return exit_code::kSuccess;
}

int run_queue_push(const Call& call) {
  call.client.queue_push(call.key(0), value_of(call.word(1)), call.deadline());
  return confirmed(call);
}

int run_queue_pop(const Call& call) {
  const auto value = call.arguments.waits ? call.client.queue_pop(call.key(0), call.deadline())
                                          : call.client.try_queue_pop(call.key(0), call.deadline());
  if (value) {
    print_value(call.arguments.format, *value);
    return exit_code::kSuccess;
  }
  return call.arguments.waits ? say_timed_out(call, "nothing came into queue " + call.word(0))
                              : say_absent(call, "queue " + call.word(0) + " is empty");
}

int run_queue_len(const Call& call) {
  print_line(std::to_string(call.client.queue_len(call.key(0), call.deadline())));
  return exit_code::kSuccess;
}

int run_barrier(const Call& call) {
  const std::int64_t count = parse_number("barrier", call.word(1));
  if (call.client.barrier(call.key(0), count, call.deadline())) return exit_code::kSuccess;
  const std::int64_t here = call.client.add(call.key(0), 0, call.deadline());
  return say_timed_out(call, std::to_string(here) + " of " + std::to_string(count) + " arrived at " + call.word(0));
}

const std::map<std::string, int (*)(const Call&)>& all_handlers() {
  static const std::map<std::string, int (*)(const Call&)> handlers = {
      {"ping", run_ping},
      {"get", run_get},
      {"multi-get", run_get},
      {"check", run_check},
      {"wait", run_wait},
      {"set", run_set},
      {"multi-set", run_multi_set},
      {"add", run_add},
      {"append", run_append},
      {"delete", run_delete},
      {"num-keys", run_num_keys},
      {"compare-set", run_compare_set},
      {"barrier", run_barrier},
      {"queue-len", run_queue_len},
      {"queue-push", run_queue_push},
      {"queue-pop", run_queue_pop},
  };
  return handlers;
}

/// The port of MASTER_PORT, which may say anything.
std::uint16_t port_from_environment() {
  const auto text = tensorplay::base::env_value(env::kMasterPort);
  if (!text) throw UsageError("MASTER_ADDR is set and MASTER_PORT is not; say --endpoint HOST:PORT");
  std::uint16_t port = 0;
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), port);
  if (error != std::errc{} || stop != text->data() + text->size() || port == 0) {
    throw UsageError("MASTER_PORT=" + *text + ": not a port; give a number from 1 to 65535");
  }
  return port;
}

HostPort endpoint_of(const Arguments& arguments) {
  if (arguments.endpoint.empty()) {
    const auto host = tensorplay::base::env_value(env::kMasterAddr);
    if (!host || host->empty())
      throw UsageError("which store? say --endpoint HOST:PORT, or set MASTER_ADDR and MASTER_PORT");
    return {*host, port_from_environment()};
  }
  try {
    HostPort endpoint = tensorplay::base::parse_host_port(arguments.endpoint);
    if (!endpoint.port || *endpoint.port == 0)
      throw UsageError("--endpoint=" + arguments.endpoint + ": names no port; say HOST:PORT");
    return endpoint;
  } catch (const tensorplay::distributed::InvalidArgument& error) {
    throw UsageError("--endpoint=" + arguments.endpoint + ": " + error.what());
  }
}

/// Finds the mistakes that need no store to be seen, before one is waited for.
void check_words(const Arguments& arguments) {
  const auto& words = arguments.operands;
  if ((arguments.command == "add" || arguments.command == "barrier") && words.size() > 1) {
    parse_number(arguments.command, words[1]);
  }
  if (arguments.command == "multi-set" && words.size() % 2 != 0) {
    throw UsageError("multi-set: " + words.back() + " has no value; say KEY VALUE KEY VALUE");
  }
}

}  // namespace

std::string wire_key(const Arguments& arguments, const std::string& key) {
  return arguments.raw_keys ? key : '/' + key;
}

StoreClient connect(const Arguments& arguments) {
  const HostPort endpoint = endpoint_of(arguments);
  return StoreClient(endpoint.host, *endpoint.port, Deadline::after(arguments.timeout));
}

int run_command(const Arguments& arguments) {
  check_words(arguments);
  StoreClient client = connect(arguments);
  return all_handlers().at(arguments.command)(Call{arguments, client});
}

}  // namespace tpstore
