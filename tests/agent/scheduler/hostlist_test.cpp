#include "agent/scheduler/hostlist.hpp"

#include "tests/support/catch.hpp"

using tensorplay::agent::expand_hostlist;
using Names = std::vector<std::string>;

TEST_CASE("a host list is expanded as scontrol show hostnames does") {
  CHECK(expand_hostlist("n1") == Names{"n1"});
  CHECK(expand_hostlist("n[1-3,7]") == Names{"n1", "n2", "n3", "n7"});
  CHECK(expand_hostlist("n[9-11]") == Names{"n9", "n10", "n11"});
  CHECK(expand_hostlist("n[09-11]") == Names{"n09", "n10", "n11"});
  CHECK(expand_hostlist("n[099-101]") == Names{"n099", "n100", "n101"});
  CHECK(expand_hostlist("n[3,1]") == Names{"n3", "n1"});
  CHECK(expand_hostlist("n1,n2,,login") == Names{"n1", "n2", "login"});
  CHECK(expand_hostlist("n[001]") == Names{"n001"});
}

TEST_CASE("text may stand behind brackets, and several brackets make every combination") {
  CHECK(expand_hostlist("n[1-2],m[01-02]-ib") == Names{"n1", "n2", "m01-ib", "m02-ib"});
  CHECK(expand_hostlist("rack[0-1]n[1-2]") == Names{"rack0n1", "rack0n2", "rack1n1", "rack1n2"});
  CHECK(expand_hostlist("a[1-2]-[3-4]x,b") == Names{"a1-3x", "a1-4x", "a2-3x", "a2-4x", "b"});
  CHECK(expand_hostlist("[1-2].cluster") == Names{"1.cluster", "2.cluster"});
}

TEST_CASE("what is no host list, or too long a one, is refused and not guessed at") {
  for (const char* text : {"", "n[", "n]", "n[]", "n[1-]", "n[-1]", "n[a-c]", "n[2-1]", "x[1[2-3]]", "n 1", "(null)",
                           "n[1-99999999]", "n[0-999]m[0-999]", "n[0000000000001]", ","}) {
    INFO(text);
    CHECK_FALSE(expand_hostlist(text));
  }
  CHECK(expand_hostlist("n[1-65536]")->size() == 65'536);
  CHECK_FALSE(expand_hostlist("n[1-65537]"));
}
