#include "rendezvous/discovery/etcd_client.hpp"

#include "rendezvous/discovery/http_response.hpp"
#include "runtime/base/socket.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include <sys/socket.h>

namespace tensorplay::rendezvous {

using distributed::Deadline;
using distributed::DistStoreError;
using Clock = Deadline::Clock;
using nlohmann::json;

namespace {

constexpr std::chrono::milliseconds kConnectTime{2'000};
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The gateway writes 64-bit numbers as text, and leaves zeros out.
template <typename Number>
Number number_at(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return 0;
  if (!found->is_string()) return found->get<Number>();
  const auto& text = found->get_ref<const std::string&>();
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

json parse(const std::string& text) {
  auto parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) throw EtcdUnavailable("etcd's answer cannot be read");
  return parsed;
}

/// A streaming request is answered by {"result": ...} or {"error": ...}, a line each.
json parse_result(const std::string& text) {
  auto answer = parse(text.substr(0, text.find('\n')));
  if (!answer.contains("result")) throw EtcdUnavailable("etcd's answer has no result: " + text.substr(0, 200));
  return answer["result"];
}

std::string name_of(const EtcdMember& member) {
  return base::format_host_port(member.endpoint.host, member.endpoint.port);
}

/// The gateway's own words for an error.
std::string error_text(const HttpResponse& response) {
  const auto answer = json::parse(response.body(), nullptr, false);
  if (answer.is_object() && answer.contains("error") && answer["error"].is_string()) return answer["error"];
  return "HTTP status " + std::to_string(response.status());
}

}  // namespace

std::string base64_of(const std::string& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

std::string from_base64(const std::string& text) {
  std::string bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    const auto digit = kDigits.find(c);
    if (digit == kDigits.npos) throw std::invalid_argument("not base64");
    group = group << 6 | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 0xFF);
  }
  return bytes;
}

EtcdClient::EtcdClient(std::vector<EtcdMember> members, const Interrupt& interrupt, std::chrono::milliseconds patience)
    : members_(std::move(members)), interrupt_(interrupt), patience_(patience) {}

std::string EtcdClient::post(const std::string& path, const std::string& body) {
  std::string reasons;
  for (std::size_t tried = 0; tried < members_.size(); ++tried) {
    const auto& member = members_[current_];
    try {
      return post_to(member, path, body, Deadline::after(patience_), {});
    } catch (const EtcdUnavailable& error) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(error.what());
      current_ = (current_ + 1) % members_.size();
    }
  }
  throw EtcdUnavailable(reasons);
}

base::UniqueFd EtcdClient::connect(const EtcdMember& member) {
  const auto address = base::SocketAddress::resolve(member.address, member.endpoint.port).front();
  const auto fail = [&](int error) -> EtcdUnavailable {
    return EtcdUnavailable("etcd at " + name_of(member) + ": " + std::strerror(error));
  };
  base::UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw fail(errno);
  if (::connect(fd.get(), address.data(), address.size()) != 0) {
    if (errno != EINPROGRESS) throw fail(errno);
    const auto until = Clock::now() + std::min(kConnectTime, patience_);
    std::vector<pollfd> waits{{fd.get(), POLLOUT, 0}};
    while (waits[0].revents == 0) {
      if (Clock::now() >= until) throw fail(ETIMEDOUT);
      interrupt_.wait(waits, until);
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) throw fail(error);
  }
  base::set_no_delay(fd.get());
  return fd;
}

std::string EtcdClient::post_to(const EtcdMember& member, const std::string& path, const std::string& body,
                                Deadline deadline, const IsEnough& is_enough) {
  interrupt_.check();
  const auto fail = [&](const std::string& why) -> EtcdUnavailable {
    return EtcdUnavailable("etcd at " + name_of(member) + ": " + why);
  };
  const auto fd = connect(member);
  std::string unsent =
      "POST " + path + " HTTP/1.1\r\nHost: " + name_of(member) +
      "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  HttpResponse response;
  while (!response.is_complete()) {
    std::vector<pollfd> waits{{fd.get(), static_cast<short>(unsent.empty() ? POLLIN : POLLIN | POLLOUT), 0}};
    interrupt_.wait(waits, deadline.when());
    if (waits[0].revents == 0 && deadline.has_passed()) {
      if (is_enough) return response.body();  // The caller only wanted to wait.
      throw fail("no answer within " + std::to_string(patience_.count()) + " ms");
    }
    if (!unsent.empty()) {
      const auto sent = ::send(fd.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) unsent.erase(0, static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EAGAIN && errno != EINTR) unsent.clear();  // What was said before may be read yet.
    }
    std::array<char, 8192> buffer;
    const auto got = ::recv(fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
      response.receive({buffer.data(), static_cast<std::size_t>(got)});
    } else if (got == 0) {
      response.peer_closed();
    } else if (errno != EAGAIN && errno != EINTR) {
      throw fail(std::strerror(errno));
    }
    if (!response.error().empty()) throw fail(response.error());
    if (is_enough && response.status() == 200 && is_enough(response.body())) return response.body();
  }
  if (response.status() == 200) return response.body();
  if (response.status() == 404) {
    throw DistStoreError(name_of(member) + " is not etcd 3.4 or later: it does not know " + path);
  }
  // No leader, too many requests, an internal error: later perhaps. What the request itself lacks will not come.
  if (response.status() >= 500 || response.status() == 429) throw fail(error_text(response));
  throw DistStoreError("etcd at " + name_of(member) + ": " + error_text(response));
}

std::optional<EtcdClient::Value> EtcdClient::get(const std::string& key) {
  const auto answer = parse(post("/v3/kv/range", json{{"key", base64_of(key)}}.dump()));
  const auto values = answer.find("kvs");
  if (values == answer.end() || values->empty()) return std::nullopt;
  const auto& first = values->at(0);
  Value value;
  try {
    value.text = from_base64(first.value("value", ""));
  } catch (const std::exception&) {
    throw EtcdUnavailable("etcd's answer cannot be read");
  }
  value.created = number_at<Revision>(first, "create_revision");
  value.lease = number_at<Lease>(first, "lease");
  value.now = number_at<Revision>(answer.value("header", json::object()), "revision");
  return value;
}

std::optional<EtcdClient::Revision> EtcdClient::create(const std::string& key, const std::string& text, Lease lease) {
  const auto name = base64_of(key);
  const json request{
      {"compare", {{{"key", name}, {"target", "CREATE"}, {"result", "EQUAL"}, {"create_revision", "0"}}}},
      {"success", {{{"request_put", {{"key", name}, {"value", base64_of(text)}, {"lease", std::to_string(lease)}}}}}}};
  const auto answer = parse(post("/v3/kv/txn", request.dump()));
  if (!answer.value("succeeded", false)) return std::nullopt;
  return number_at<Revision>(answer.value("header", json::object()), "revision");
}

EtcdClient::Lease EtcdClient::grant_lease(std::chrono::seconds time) {
  const auto answer = parse(post("/v3/lease/grant", json{{"TTL", std::to_string(time.count())}}.dump()));
  const auto lease = number_at<Lease>(answer, "ID");
  if (lease == 0) throw EtcdUnavailable("etcd granted no lease");
  return lease;
}

bool EtcdClient::keep_alive(Lease lease) {
  const auto result = parse_result(post("/v3/lease/keepalive", json{{"ID", std::to_string(lease)}}.dump()));
  return number_at<std::int64_t>(result, "TTL") > 0;
}

void EtcdClient::revoke(Lease lease) {
  post("/v3/lease/revoke", json{{"ID", std::to_string(lease)}}.dump());
}

void EtcdClient::wait_for_change(const std::string& key, Revision revision, std::chrono::milliseconds time) {
  const json request{{"create_request", {{"key", base64_of(key)}, {"start_revision", std::to_string(revision + 1)}}}};
  // The first line only says that the watch has begun.
  post_to(members_[current_], "/v3/watch", request.dump(), Deadline::after(time),
          [](const std::string& body) { return body.find("\"events\"") != std::string::npos; });
}

}  // namespace tensorplay::rendezvous
