#include "apps/tpstore/listing.hpp"

#include "tests/support/catch.hpp"

using namespace tpstore;
using Sentences = std::vector<std::string>;

TEST_CASE("who has joined is read from the worker count and from Gloo's address keys") {
  const Content content = {
      {"init/", "4"},
      {"/default_pg/0//cpu//0/0", ""},
      {"/default_pg/0//cpu//0/3", ""},
      {"/default_pg/0//7//cpu//0/0", ""},
      {"/default_pg/0//7//cpu//0/1", ""},
      {"/default_pg/0//cpu//0/x", "not a rank"},
      {"/somebody's own", "value"},
  };
  REQUIRE(describe_members(content) == Sentences{"4 stores have joined (init/)",
                                                 "group default_pg/0: Gloo addresses of ranks 0 3; not yet of 1 2",
                                                 "group default_pg/0//7: Gloo addresses of ranks 0 1"});
}

TEST_CASE("a store without such keys tells nothing about members, and a strange count is told as it is") {
  REQUIRE(describe_members({{"/k", "v"}}).empty());
  REQUIRE(describe_members({{"init/", "many"}}) == Sentences{"many stores have joined (init/)"});
}
