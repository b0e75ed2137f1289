#include "apps/tpstore/listing.hpp"

#include "apps/tpstore/commands.hpp"
#include "apps/tpstore/output.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <set>
#include <unistd.h>

#include <arpa/inet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace tpstore {
namespace {

using tensorplay::distributed::Deadline;
using tensorplay::store::StoreClient;

constexpr std::string_view kWorkerCount = "init/";
constexpr std::string_view kAddressMark = "/cpu//";  // .../cpu//<sequence>/<rank>: where Gloo's ranks leave addresses

/// All keys and values. A key that goes away while we look is left out.
Content read_content(StoreClient& client, const Arguments& arguments, const std::string& prefix) {
  constexpr std::size_t kBatch = 1000;
  auto keys = client.list_keys(Deadline::after(arguments.timeout));
  std::erase_if(keys, [&](const std::string& key) { return !key.starts_with(prefix); });
  Content content;
  for (std::size_t begin = 0; begin < keys.size(); begin += kBatch) {
    std::vector<std::string> batch(keys.begin() + static_cast<std::ptrdiff_t>(begin),
                                   keys.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kBatch, keys.size())));
    if (!client.check(batch, Deadline::after(arguments.timeout))) {
      std::erase_if(batch, [&](const auto& key) { return !client.check({key}, Deadline::after(arguments.timeout)); });
    }
    const auto values = client.multi_get(batch, Deadline::after(arguments.timeout));
    if (!values) continue;
    for (std::size_t i = 0; i < batch.size(); ++i) content.emplace(batch[i], (*values)[i]);
  }
  return content;
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 40) return size.ws_col;
  return 120;
}

/// The key as a user spells it: without the slash that every client puts in front.
std::string user_key(const std::string& key) {
  return key.starts_with('/') ? as_preview(key.substr(1), 500) : as_preview(key, 500);
}

/// "127.0.0.1:41075" when the value is what Gloo's TCP transport stores for a rank: 18 bytes of counts, then the socket
/// address; empty otherwise.
std::string gloo_address(const std::string& value) {
  constexpr std::size_t kAddressAt = 18;
  if (value.size() < kAddressAt + sizeof(sockaddr_in6)) return "";
  sockaddr_in v4{};
  std::memcpy(&v4, value.data() + kAddressAt, sizeof v4);
  char text[INET6_ADDRSTRLEN] = {};
  if (v4.sin_family == AF_INET && inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text) != nullptr) {
    return std::string(text) + ':' + std::to_string(ntohs(v4.sin_port));
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, value.data() + kAddressAt, sizeof v6);
  if (v6.sin6_family == AF_INET6 && inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text) != nullptr) {
    return '[' + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return "";
}

struct AddressKey {
  std::string group;
  int rank = -1;
};

/// Takes "/default_pg/0//cpu//0/1" apart: group "default_pg/0", rank 1. The rank is -1 for any other key.
AddressKey parse_address_key(const std::string& key) {
  const std::size_t mark = key.find(kAddressMark);
  const std::size_t slash = key.rfind('/');
  if (mark == std::string::npos || !key.starts_with('/') || slash < mark + kAddressMark.size()) return {};
  int rank = -1;
  const char* end = key.data() + key.size();
  const auto [stop, error] = std::from_chars(key.data() + slash + 1, end, rank);
  if (error != std::errc{} || stop != end) return {};
  std::string group = key.substr(1, mark - 1);
  while (group.ends_with('/')) group.pop_back();
  return {std::move(group), rank};
}

std::string join_numbers(const std::set<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

std::string value_preview(const std::string& key, const std::string& value, std::size_t width) {
  if (parse_address_key(key).rank >= 0) {
    if (const std::string address = gloo_address(value); !address.empty()) return "Gloo's address " + address;
  }
  return as_preview(value, width);
}

void print_table(const Content& content) {
  std::size_t key_width = 3;
  for (const auto& [key, value] : content)
    key_width = std::max(key_width, std::min<std::size_t>(user_key(key).size(), 60));
  const std::size_t terminal = terminal_width();
  const std::size_t value_width = terminal > key_width + 25 ? terminal - key_width - 15 : 20;
  std::printf("%-*s  %8s  %s\n", static_cast<int>(key_width), "key", "bytes", "value");
  for (const auto& [key, value] : content) {
    std::printf("%-*s  %8zu  %s%s\n", static_cast<int>(key_width), user_key(key).c_str(), value.size(),
                value_preview(key, value, value_width).c_str(),
                key.starts_with('/') ? "" : "  (hidden: reach it with --raw)");
  }
}

nlohmann::json content_as_json(const StoreClient& client, const Content& content) {
  auto entries = nlohmann::json::array();
  for (const auto& [key, value] : content) {
    entries.push_back({{"key", as_json(key.starts_with('/') ? key.substr(1) : key)},
                       {"hidden", !key.starts_with('/')},
                       {"size", value.size()},
                       {"value", as_json(value)}});
  }
  return {{"endpoint", client.endpoint()}, {"keys", entries}, {"members", describe_members(content)}};
}

}  // namespace

std::vector<std::string> describe_members(const Content& content) {
  std::vector<std::string> sentences;
  int joined = 0;
  if (const auto count = content.find(std::string(kWorkerCount)); count != content.end()) {
    std::from_chars(count->second.data(), count->second.data() + count->second.size(), joined);
    sentences.push_back(count->second + " stores have joined (init/)");
  }
  std::map<std::string, std::set<int>> groups;
  for (const auto& [key, value] : content) {
    if (const AddressKey address = parse_address_key(key); address.rank >= 0)
      groups[address.group].insert(address.rank);
  }
  for (const auto& [group, ranks] : groups) {
    std::string sentence = "group " + group + ": Gloo addresses of ranks " + join_numbers(ranks);
    std::set<int> absent;
    // Only the world's own group is known to have as many ranks as stores have joined; others reveal gaps alone.
    const int size = std::max(*ranks.rbegin() + 1, group.ends_with("default_pg/0") ? joined : 0);
    for (int rank = 0; rank < size; ++rank) {
      if (!ranks.contains(rank)) absent.insert(rank);
    }
    if (!absent.empty()) sentence += "; not yet of " + join_numbers(absent);
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

int run_list(const Arguments& arguments) {
  StoreClient client = connect(arguments);
  const std::string prefix = arguments.operands.empty() ? "" : wire_key(arguments, arguments.operands[0]);
  const Content content = read_content(client, arguments, prefix);
  if (arguments.format == Format::kJson) {
    print_line(content_as_json(client, content).dump());
    return exit_code::kSuccess;
  }
  if (arguments.format == Format::kRaw) {
    for (const auto& [key, value] : content) print_line(key);
    return exit_code::kSuccess;
  }
  if (content.empty()) {
    print_line("no keys");
    return exit_code::kSuccess;
  }
  print_table(content);
  const auto sentences = describe_members(content);
  if (!sentences.empty()) print_line("");
  for (const auto& sentence : sentences) print_line(sentence);
  return exit_code::kSuccess;
}

int run_dump(const Arguments& arguments) {
  StoreClient client = connect(arguments);
  print_line(content_as_json(client, read_content(client, arguments, "")).dump(2));
  return exit_code::kSuccess;
}

}  // namespace tpstore
