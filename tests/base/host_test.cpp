#include "runtime/base/host.hpp"

#include "tests/support/catch.hpp"

#include <algorithm>

namespace base = tensorplay::base;

TEST_CASE("the full name comes from the line of /etc/hosts that names this host") {
  const char* hosts =
      "127.0.0.1 localhost.localdomain localhost\n"
      "# 10.0.0.9 n1.wrong n1\n"
      "10.0.0.1\tn1 n1.cluster.example # first node\n"
      "10.0.0.2 n2.cluster.example n2\n";
  REQUIRE(base::find_full_name(hosts, "n1") == "n1.cluster.example");
  REQUIRE(base::find_full_name(hosts, "n2") == "n2.cluster.example");
  REQUIRE(base::find_full_name(hosts, "n3").empty());
}

TEST_CASE("a user is found by number, not by a prefix of it") {
  const char* passwd = "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/sh\nbad line\n";
  REQUIRE(base::find_user_name(passwd, 0) == "root");
  REQUIRE(base::find_user_name(passwd, 1000) == "ann");
  REQUIRE(base::find_user_name(passwd, 100).empty());
}

TEST_CASE("loopback is the last address to tell to another host, a container bridge after real interfaces") {
  std::vector<base::InterfaceAddress> addresses = {
      {"lo", "127.0.0.1", false, true, false},     {"docker0", "172.17.0.1", false, false, false},
      {"eth0", "fe80::1%eth0", true, false, true}, {"eth0", "2001:db8::1", true, false, false},
      {"eth0", "10.0.0.1", false, false, false},
  };
  base::sort_best_first(addresses);
  std::vector<std::string> order;
  for (const auto& address : addresses) order.push_back(address.address);
  REQUIRE(order == std::vector<std::string>{"10.0.0.1", "2001:db8::1", "172.17.0.1", "fe80::1%eth0", "127.0.0.1"});
}

TEST_CASE("this machine has a name, an identity, a user and a loopback address") {
  REQUIRE_FALSE(base::short_host_name().empty());
  REQUIRE(base::short_host_name().find('.') == std::string::npos);
  REQUIRE(base::full_host_name().starts_with(base::short_host_name()));
  REQUIRE(base::host_identity() == base::host_identity());
  REQUIRE_FALSE(base::current_user().empty());
  const auto addresses = base::interface_addresses();
  REQUIRE(std::any_of(addresses.begin(), addresses.end(), [](const auto& a) { return a.is_loopback; }));
}
