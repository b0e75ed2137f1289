#include "runtime/store/file_log.hpp"

#include "tests/support/catch.hpp"

using namespace tensorplay::store;
using namespace std::string_literals;

TEST_CASE("a record is length, key, length, value, as torch writes it") {
  REQUIRE(encode_record("/k", "val") == "\x02\0\0\0/k\x03\0\0\0val"s);
  REQUIRE(encode_deletion("/k") == "\x03\0\0\0-/k\0\0\0\0"s);
}

TEST_CASE("later records override earlier ones and a deletion takes a key away") {
  FileLog log;
  const std::string bytes = encode_record("/a", "1") + encode_record("/b", "2") + encode_record("/a", "3") +
                            encode_deletion("/b") + encode_deletion("/never");
  const auto fed = log.feed(bytes);
  REQUIRE(fed.consumed == bytes.size());
  REQUIRE(fed.tail == FileLog::Tail::kWhole);
  REQUIRE(*log.find("/a") == "3");
  REQUIRE(log.find("/b") == nullptr);
  REQUIRE(log.entries().size() == 1);
}

TEST_CASE("a log cut at any byte gives its whole records and a torn tail, and goes on when the rest arrives") {
  const std::string first = encode_record("/first", "1");
  const std::string bytes = first + encode_record("/second", "two");
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    CAPTURE(cut);
    FileLog log;
    const auto fed = log.feed(std::string_view(bytes).substr(0, cut));
    REQUIRE(fed.consumed == (cut == bytes.size() ? cut : cut >= first.size() ? first.size() : 0));
    const bool is_whole = cut == 0 || cut == first.size() || cut == bytes.size();
    REQUIRE(fed.tail == (is_whole ? FileLog::Tail::kWhole : FileLog::Tail::kTorn));
    REQUIRE(log.feed(std::string_view(bytes).substr(fed.consumed)).consumed == bytes.size() - fed.consumed);
    REQUIRE(*log.find("/second") == "two");
  }
}

TEST_CASE("a tail of zeros is torn, text is not a store, a giant length does not take memory") {
  FileLog log;
  REQUIRE(log.feed(std::string(5000, '\0')).tail == FileLog::Tail::kTorn);
  REQUIRE(log.feed("127.0.0.1 localhost\n").tail == FileLog::Tail::kNotAStore);
  REQUIRE(log.feed("\x02\0\0\0zz\0\0\0\0"s).tail == FileLog::Tail::kNotAStore);
  REQUIRE(log.feed("\0\0\0\0/k"s).tail == FileLog::Tail::kNotAStore);
  REQUIRE(log.feed("\x02\0\0\0/k\xff\xff\xff\xff"s).tail == FileLog::Tail::kTorn);
}

TEST_CASE("a found file is judged by who counts as its user, who lives, and whose attempt it is") {
  const FileState crashed{.is_empty = false, .users = 2, .locking_users = 2, .is_lock_held = false, .attempt = ""};
  REQUIRE(judge_found_file(FileState{}, 2, "job#1") == FileVerdict::kUse);
  REQUIRE(judge_found_file(crashed, 2, "") == FileVerdict::kEmpty);
  REQUIRE(judge_found_file(crashed, -1, "") == FileVerdict::kUse);

  FileState in_use = crashed;
  in_use.is_lock_held = true;
  in_use.attempt = "job#0";
  REQUIRE(judge_found_file(in_use, 2, "job#0") == FileVerdict::kUse);
  REQUIRE(judge_found_file(in_use, 2, "job#1") == FileVerdict::kBusy);
  REQUIRE(judge_found_file(in_use, 2, "") == FileVerdict::kUse);

  FileState partly_foreign = crashed;
  partly_foreign.users = 3;
  REQUIRE(judge_found_file(partly_foreign, 2, "") == FileVerdict::kUseDoubtful);

  const FileState all_closed{
      .is_empty = false, .users = 0, .locking_users = 0, .is_lock_held = false, .attempt = "job#0"};
  REQUIRE(judge_found_file(all_closed, 2, "job#0") == FileVerdict::kUse);
  REQUIRE(judge_found_file(all_closed, 2, "job#1") == FileVerdict::kEmpty);
}
