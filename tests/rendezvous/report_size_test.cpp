#include "rendezvous/report_size.hpp"

#include "tests/support/catch.hpp"

using namespace tensorplay::rendezvous;

TEST_CASE("a report of ordinary size goes out as it is") {
  Stopped stopped;
  stopped.failures.resize(1);
  stopped.failures[0].traceback = std::string(100'000, 't');
  REQUIRE(encode_within(stopped) == encode(Report(stopped)));
}

TEST_CASE("a report that is too long for one message keeps every failure, and the ends of what each has to say") {
  Stopped stopped;
  for (int rank = 0; rank < 256; ++rank) {
    auto& failure = stopped.failures.emplace_back();
    failure.rank = rank;
    failure.traceback = "first call" + std::string(1 << 20, '\1') + "last call";
    failure.last_lines.assign(20, std::string(100'000, 'l'));
  }
  constexpr std::size_t kLimit = 7 << 20;
  const auto text = encode_within(stopped, kLimit);
  REQUIRE(text.size() <= kLimit);
  const auto read = std::get<Stopped>(decode_report(text));
  REQUIRE(read.failures.size() == 256);
  REQUIRE(read.failures[255].rank == 255);
  REQUIRE(read.failures[255].traceback.starts_with("first call"));
  REQUIRE(read.failures[255].traceback.ends_with("last call"));
  REQUIRE(read.failures[255].last_lines.size() == 20);
}
