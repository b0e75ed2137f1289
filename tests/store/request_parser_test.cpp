#include "runtime/store/request_parser.hpp"

#include "tensorplay/distributed/errors.hpp"
#include "tests/support/catch.hpp"

#include <chrono>
#include <random>

using namespace tensorplay::store;

namespace {

/// A request flattened to text, so that two streams can be compared.
std::string describe(const Request& request) {
  std::string text = std::to_string(static_cast<int>(request.opcode));
  for (const auto* part : {&request.key, &request.value, &request.desired, &request.user, &request.agent}) {
    text += "|" + *part;
  }
  for (const auto& key : request.keys) text += "#" + key;
  text += "|" + std::to_string(request.number) + "," + std::to_string(request.first_u32) + "," +
          std::to_string(request.second_u32) + "," + std::to_string(request.role);
  return text;
}

struct Parsed {
  std::vector<std::string> requests;
  std::string error;
};

/// Feeds `stream` in pieces of the sizes that `next_size` gives.
template <typename NextSize>
Parsed parse(std::string_view stream, NextSize next_size) {
  RequestParser parser;
  Parsed parsed;
  while (!stream.empty() && parser.error().empty()) {
    auto piece = stream.substr(0, next_size());
    stream.remove_prefix(piece.size());
    while (const auto* request = parser.next(piece)) parsed.requests.push_back(describe(*request));
    if (parser.error().empty()) REQUIRE(piece.empty());
  }
  parsed.error = parser.error();
  return parsed;
}

Parsed parse(std::string_view stream) {
  return parse(stream, [&] { return stream.size(); });
}

std::string validated(const std::string& rest) {
  std::string out;
  encode_validate(out);
  return out + rest;
}

std::string keyed_header(Opcode opcode, std::uint64_t length) {
  std::string out;
  put_u8(out, static_cast<std::uint8_t>(opcode));
  put_u64(out, length);
  return out;
}

/// One request of every kind, with an empty and a long string among them.
std::string every_request() {
  std::string out;
  encode_validate(out);
  encode_set(out, "/k", "v");
  encode_compare_set(out, "/k", "", std::string(3000, 'd'));
  encode_get(out, "");
  encode_add(out, "init/", -5);
  encode_check(out, {"/a", "/b"});
  encode_wait(out, {});
  encode_get_num_keys(out);
  encode_delete_key(out, "/k");
  encode_append(out, "/k", "");
  encode_multi_get(out, {"/a", "", "/c"});
  encode_multi_set(out, {}, {});
  encode_multi_set(out, {"/x", "/y", ""}, {"1", "", "3"});
  encode_cancel_wait(out);
  encode_ping(out, 0xDEADBEEF);
  encode_queue_push(out, "/q", std::string(1, '\0'));
  encode_queue_pop(out, "/q");
  encode_queue_len(out, "/q");
  encode_list_keys(out);
  encode_barrier(out, "/b", 8);
  encode_hello(out, {1, Role::kAgent, "job7", "ada", "n1.17.ab", 3});
  encode_get_wait(out, "/k");
  encode_multi_get_wait(out, {"/k"});
  encode_queue_pop_wait(out, "/q");
  encode_mail_push(out, "inbox", 9, "{}");
  encode_mail_read(out, "orders/n1", 4);
  encode_leave_will(out, 77, 15000, 2000, "lost n1");
  encode_keep_alive(out);
  encode_cancel_will(out);
  encode_declare_lost(out, "n1", 77);
  return out;
}

}  // namespace

TEST_CASE("a request has the bytes that PyTorch's client sends") {
  std::string out;
  encode_set(out, "/k", "v");
  REQUIRE(out == std::string("\x01\x02\0\0\0\0\0\0\0/k\x01\0\0\0\0\0\0\0v", 20));
  out.clear();
  encode_validate(out);
  REQUIRE(out == std::string("\0\xCE\xF7\x85\x3C", 5));
  REQUIRE_THROWS_AS(encode_multi_set(out, {"/a"}, {}), tensorplay::distributed::InvalidArgument);
}

TEST_CASE("every request is understood with all its arguments") {
  const auto parsed = parse(every_request());
  REQUIRE(parsed.error.empty());
  REQUIRE(parsed.requests.size() == 30);
  REQUIRE(parsed.requests[0] == "1|/k|v||||0,0,0,0");
  REQUIRE(parsed.requests[1] == "2|/k||" + std::string(3000, 'd') + "|||0,0,0,0");
  REQUIRE(parsed.requests[3] == "4|init/|||||" + std::to_string(static_cast<std::uint64_t>(-5)) + ",0,0,0");
  REQUIRE(parsed.requests[9] == "10|||||#/a##/c|0,0,0,0");
  REQUIRE(parsed.requests[10] == "1|/x|1||||0,0,0,0");
  REQUIRE(parsed.requests[12] == "1||3||||0,0,0,0");
  REQUIRE(parsed.requests[20] == "224|job7|||ada|n1.17.ab|3,1,0,1");
  REQUIRE(parsed.requests[26] == "230||lost n1||||77,15000,2000,0");
}

TEST_CASE("how the network cuts a stream changes nothing") {
  const auto stream = every_request();
  const auto whole = parse(stream);
  REQUIRE(parse(stream, [] { return 1; }).requests == whole.requests);
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::uniform_int_distribution<std::size_t> size(1, 1 + round);
    const auto cut = parse(stream, [&] { return size(random); });
    REQUIRE(cut.error.empty());
    REQUIRE(cut.requests == whole.requests);
  }
}

TEST_CASE("a first byte that no client sends is refused at once") {
  for (const std::string garbage : {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x", "\x16\x03\x01", "\x01", "\x0C"}) {
    const auto parsed = parse(garbage);
    REQUIRE(parsed.requests.empty());
    REQUIRE_FALSE(parsed.error.empty());
  }
}

TEST_CASE("a wrong magic is refused at its first wrong byte") {
  const std::string magic("\0\xCE\xF7\x85\x3C", 5);
  for (std::size_t i = 0; i < magic.size(); ++i) {
    auto wrong = magic.substr(0, i + 1);
    wrong[i] = static_cast<char>(wrong[i] ^ 1);
    REQUIRE_FALSE(parse(wrong).error.empty());
    REQUIRE(parse(magic.substr(0, i)).error.empty());
  }
}

TEST_CASE("a second validation, an opcode of old clients and an unknown one end the stream") {
  REQUIRE_FALSE(parse(validated(validated(""))).error.empty());
  for (const int opcode : {19, 64, 0xDF, 0xEB, 0xFF}) {
    REQUIRE(parse(validated(std::string(1, static_cast<char>(opcode)))).error ==
            "opcode " + std::to_string(opcode) + " is unknown");
  }
}

TEST_CASE("nothing after an error is parsed") {
  RequestParser parser;
  std::string_view garbage = "x";
  REQUIRE(parser.next(garbage) == nullptr);
  const auto good = every_request();
  std::string_view data = good;
  REQUIRE(parser.next(data) == nullptr);
  REQUIRE(data.size() == good.size());
}

TEST_CASE("lengths at the limits pass and those over them are refused before a byte of theirs has come") {
  for (const std::uint64_t length : {std::uint64_t{kMaxKeyBytes} + 1, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    REQUIRE_FALSE(parse(validated(keyed_header(Opcode::kGet, length))).error.empty());
  }
  REQUIRE(parse(validated(keyed_header(Opcode::kGet, kMaxKeyBytes))).error.empty());

  std::string set = keyed_header(Opcode::kSet, 1) + "k";
  put_u64(set, kMaxPayloadBytes);
  REQUIRE(parse(validated(set)).error.empty());
  set = keyed_header(Opcode::kSet, 1) + "k";
  put_u64(set, kMaxPayloadBytes + 1);
  REQUIRE_FALSE(parse(validated(set)).error.empty());

  for (const auto opcode : {Opcode::kCheck, Opcode::kWait, Opcode::kMultiGet, Opcode::kMultiSet}) {
    REQUIRE(parse(validated(keyed_header(opcode, kMaxKeyCount))).error.empty());
    REQUIRE_FALSE(parse(validated(keyed_header(opcode, kMaxKeyCount + 1))).error.empty());
  }
}

TEST_CASE("the keys of one request together are limited too") {
  std::string piece;
  put_bytes(piece, std::string(kMaxKeyBytes, 'k'));
  RequestParser parser;
  const auto header = validated(keyed_header(Opcode::kWait, kMaxKeyCount));
  std::string_view data = header;
  REQUIRE(parser.next(data) == nullptr);
  std::size_t accepted = 0;
  while (parser.error().empty()) {
    data = piece;
    REQUIRE(parser.next(data) == nullptr);
    ++accepted;
    REQUIRE(accepted <= kMaxKeyListBytes / kMaxKeyBytes + 1);
  }
  REQUIRE(accepted == kMaxKeyListBytes / kMaxKeyBytes + 1);
}

TEST_CASE("a value of the greatest size is taken in small pieces in linear time") {
  std::string stream = validated("");
  encode_set(stream, "/k", std::string(kMaxPayloadBytes, 'v'));
  const auto begin = std::chrono::steady_clock::now();
  const auto parsed = parse(stream, [] { return 100; });
  REQUIRE(parsed.requests.size() == 1);
  // Quadratic work would be 350 GB of copying.
  REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

TEST_CASE("a multi-set of many pairs is handed on pair by pair") {
  std::string out = validated(keyed_header(Opcode::kMultiSet, 1000));
  put_bytes(out, "/a");
  put_bytes(out, "1");
  put_bytes(out, "/b");
  put_bytes(out, "2");
  const auto parsed = parse(out);
  REQUIRE(parsed.requests == std::vector<std::string>{"1|/a|1||||0,0,0,0", "1|/b|2||||0,0,0,0"});
}

TEST_CASE("random bytes behind the magic never do worse than an error") {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string noise(1 + random() % 200, '\0');
    for (auto& byte : noise) byte = static_cast<char>(random() % (round % 2 ? 256 : 20));
    const auto stream = validated(noise);
    const auto whole = parse(stream);
    const auto cut = parse(stream, [&] { return 1 + random() % 5; });
    REQUIRE(cut.requests == whole.requests);
    REQUIRE(cut.error == whole.error);
  }
}
