#include "tensorplay/distributed/future.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>
#include <thread>

using namespace tensorplay;
using namespace tensorplay::distributed;

TEST_CASE("callbacks run once and in order, before and after completion") {
  auto future = std::make_shared<Future>();
  std::string order;
  future->add_done_callback([&](const Future&) { order += 'a'; });
  future->add_done_callback([&](const Future&) { order += 'b'; });
  REQUIRE(order.empty());
  future->set_value({});
  future->set_value({ones({1})});  // Ignored: the first wins.
  future->add_done_callback([&](const Future&) { order += 'c'; });
  REQUIRE(order == "abc");
  REQUIRE(future->value().empty());
}

TEST_CASE("a chain of futures carries values on, and errors too") {
  auto future = std::make_shared<Future>();
  auto twice = future->then([](const Future& done) {
    auto value = done.value();
    value[0].mul_(2);
    return value;
  });
  auto failed = twice->then([](const Future&) -> Future::Value { throw std::runtime_error("no"); });
  auto after = failed->then([](const Future& done) { return done.value(); });
  future->set_value({full({1}, 21)});
  REQUIRE(twice->wait()[0].item() == 42);
  REQUIRE_THROWS_WITH(after->wait(), "no");
  REQUIRE(after->has_error());
}

TEST_CASE("a wait ends when another thread completes the future") {
  auto future = std::make_shared<Future>();
  std::thread other([&] { future->set_value({ones({1})}); });
  REQUIRE(future->wait()[0].item() == 1);
  other.join();
}

TEST_CASE("a future that is not complete has no value yet, and a bounded wait for it ends") {
  const Future future;
  REQUIRE_FALSE(future.wait_for(std::chrono::milliseconds(1)));
  REQUIRE_THROWS_AS(future.value(), InvalidArgument);
}
