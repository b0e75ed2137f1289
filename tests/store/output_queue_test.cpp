#include "runtime/store/output_queue.hpp"

#include "tests/support/catch.hpp"

#include <array>
#include <random>

using namespace tensorplay::store;

namespace {

/// Takes at most `most` bytes from the front, as a send does.
std::string take(OutputQueue& queue, std::size_t most) {
  std::array<iovec, 4> pieces;
  std::string taken;
  const auto count = queue.fill(pieces.data(), pieces.size());
  for (std::size_t i = 0; i < count && taken.size() < most; ++i) {
    taken.append(static_cast<const char*>(pieces[i].iov_base), std::min(pieces[i].iov_len, most - taken.size()));
  }
  queue.consume(taken.size());
  return taken;
}

}  // namespace

TEST_CASE("small replies are sent as one piece") {
  OutputQueue queue;
  queue.put_u8(1);
  queue.put_i64(-1);
  queue.put_value(make_blob("abc"));
  std::array<iovec, 4> pieces;
  REQUIRE(queue.fill(pieces.data(), pieces.size()) == 1);
  REQUIRE(queue.size() == 1 + 8 + 8 + 3);
}

TEST_CASE("a large value is shared and not copied") {
  OutputQueue queue;
  const auto blob = make_blob(std::string(1 << 20, 'x'));
  queue.put_value(blob);
  std::array<iovec, 4> pieces;
  REQUIRE(queue.fill(pieces.data(), pieces.size()) == 2);
  REQUIRE(pieces[1].iov_base == blob->data());
  take(queue, queue.size());
  REQUIRE(blob.use_count() == 1);
}

TEST_CASE("a missing value is an empty one") {
  OutputQueue queue;
  queue.put_value(nullptr);
  REQUIRE(take(queue, 100) == std::string(8, '\0'));
  REQUIRE(queue.empty());
}

TEST_CASE("however it is sent in pieces, the bytes are those that were put, in their order") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    OutputQueue queue;
    std::string put;
    std::string taken;
    for (int step = 0; step < 200; ++step) {
      if (random() % 2 == 0) {
        const std::string bytes(random() % 40, static_cast<char>('a' + step % 26));
        queue.put(bytes);
        put += bytes;
      } else if (random() % 4 == 0) {
        const auto blob = make_blob(std::string(random() % 9000, static_cast<char>('A' + step % 26)));
        queue.put_value(blob);
        put_u64(put, blob->size());
        put += *blob;
      } else {
        taken += take(queue, random() % 6000);
      }
      REQUIRE(queue.size() == put.size() - taken.size());
    }
    while (!queue.empty()) taken += take(queue, 1 + random() % 6000);
    REQUIRE(taken == put);
  }
}
