#include "runtime/store/mailbox_table.hpp"

#include "tests/support/catch.hpp"

using tensorplay::store::MailboxTable;

namespace {

struct Mail {
  MailboxTable table;
  MailboxTable::Deliveries deliveries;

  void push(std::string_view mailbox, std::string value) { table.push(mailbox, std::move(value), deliveries); }
  bool push_once(const std::string& sender, std::uint64_t sequence, std::string value) {
    return table.push_once("inbox", sender, sequence, std::move(value), deliveries);
  }
  void read(std::uint64_t reader, std::uint64_t first, bool lets_go = false) {
    table.read(reader, "m", first, lets_go, deliveries);
  }
  /// "reader:index=value" of what was delivered since the last call.
  std::string delivered() {
    std::string text;
    for (const auto& delivery : deliveries) {
      if (!text.empty()) text += " ";
      text += std::to_string(delivery.reader) + ":" + std::to_string(delivery.index) + "=" + *delivery.value;
    }
    deliveries.clear();
    return text;
  }
};

}  // namespace

TEST_CASE("entries are popped in their order") {
  Mail mail;
  mail.push("m", "a");
  mail.push("m", "b");
  REQUIRE(mail.table.try_pop("m") == "a");
  REQUIRE(mail.table.try_pop("m") == "b");
  REQUIRE_FALSE(mail.table.try_pop("m"));
  REQUIRE_FALSE(mail.table.try_pop("none"));
}

TEST_CASE("an entry whose reply was lost is read again") {
  Mail mail;
  mail.push("m", "a");
  mail.read(1, 0, true);
  REQUIRE(mail.delivered() == "1:0=a");
  mail.read(2, 0, true);
  REQUIRE(mail.delivered() == "2:0=a");
}

TEST_CASE("reading on lets go of what came before, and only the owner's reading does") {
  Mail mail;
  mail.push("m", "a");
  mail.push("m", "b");
  mail.read(1, 1, false);
  REQUIRE(mail.delivered() == "1:1=b");
  mail.read(1, 0, false);
  REQUIRE(mail.delivered() == "1:0=a");
  mail.read(1, 1, true);
  REQUIRE(mail.delivered() == "1:1=b");
  mail.read(1, 0, true);
  REQUIRE(mail.delivered() == "1:1=b");
}

TEST_CASE("a reader waits for the entry it asked for, and all who wait for it get it") {
  Mail mail;
  mail.read(1, 0);
  mail.read(2, 1);
  mail.read(3, 0);
  mail.push("m", "a");
  REQUIRE(mail.delivered() == "1:0=a 3:0=a");
  mail.push("m", "b");
  REQUIRE(mail.delivered() == "2:1=b");
}

TEST_CASE("a reader that has gone is given nothing") {
  Mail mail;
  mail.read(1, 0);
  mail.table.cancel(1);
  mail.table.cancel(1);
  mail.push("m", "a");
  REQUIRE(mail.delivered().empty());
}

TEST_CASE("a message that is sent again is kept once, for each sender by itself") {
  Mail mail;
  REQUIRE(mail.push_once("n1", 0, "a"));
  REQUIRE_FALSE(mail.push_once("n1", 0, "a"));
  REQUIRE(mail.push_once("n2", 0, "b"));
  REQUIRE(mail.push_once("n1", 7, "c"));
  REQUIRE_FALSE(mail.push_once("n1", 3, "late"));
  REQUIRE(mail.table.try_pop("inbox") == "a");
  REQUIRE(mail.table.try_pop("inbox") == "b");
  REQUIRE(mail.table.try_pop("inbox") == "c");
  REQUIRE_FALSE(mail.table.try_pop("inbox"));
}

TEST_CASE("a watched mailbox is named each time it fills and not while it is full") {
  Mail mail;
  mail.push("m", "a");
  mail.table.watch("m");
  REQUIRE(mail.table.take_filled() == std::vector<std::string>{"m"});
  mail.push("m", "b");
  mail.push("unwatched", "x");
  REQUIRE_FALSE(mail.table.has_filled());
  mail.table.try_pop("m");
  mail.table.try_pop("m");
  mail.push("m", "c");
  REQUIRE(mail.table.take_filled() == std::vector<std::string>{"m"});
  mail.table.unwatch("m");
  mail.table.try_pop("m");
  mail.push("m", "d");
  REQUIRE_FALSE(mail.table.has_filled());
}

TEST_CASE("a read far beyond the end waits instead of wrapping around") {
  Mail mail;
  mail.push("m", "a");
  mail.read(1, ~std::uint64_t{0}, true);
  REQUIRE(mail.delivered().empty());
  mail.push("m", "b");
  REQUIRE(mail.delivered().empty());
}
