#include "rendezvous/discovery/host_choice.hpp"

#include "tests/support/catch.hpp"

using namespace std::chrono_literals;
using namespace tensorplay::rendezvous;

namespace {

EndpointView own() {
  EndpointView view;
  view.name = "own:1";
  view.is_own = true;
  return view;
}

EndpointView other(Answer answer = Answer::kPending, std::uint64_t epoch = 0) {
  EndpointView view;
  view.name = "other:1";
  view.finding = {answer, epoch, "is odd"};
  return view;
}

EndpointView taken(Answer answer = Answer::kPending, std::uint64_t epoch = 0) {
  EndpointView view = other(answer, epoch);
  view.is_own = view.is_port_taken = true;
  return view;
}

SearchView view_of(std::vector<EndpointView> endpoints, milliseconds elapsed = 0ms) {
  SearchView view;
  view.endpoints = std::move(endpoints);
  view.elapsed = elapsed;
  view.total = 600s;
  return view;
}

/// "host 0 epoch 1", "join 1 epoch 2", "host 1 epoch 2 after another", "wait", "wait until 300000", "fail: why".
std::string text(const Choice& choice) {
  const auto place = std::to_string(choice.endpoint) + " epoch " + std::to_string(choice.epoch);
  switch (choice.kind) {
    case Choice::Kind::kJoin:
      return "join " + place;
    case Choice::Kind::kHost:
      return "host " + place + (choice.is_successor ? " after another" : "");
    case Choice::Kind::kFail:
      return "fail: " + choice.why;
    case Choice::Kind::kWait:
      break;
  }
  return choice.look_again_at ? "wait until " + std::to_string(choice.look_again_at->count()) : "wait";
}

std::string c10d(const SearchView& view) {
  return text(choose_endpoint(view));
}

std::string fixed(SearchView view, bool is_host) {
  view.is_host = is_host;
  return text(choose_static(view));
}

}  // namespace

TEST_CASE("the owner of a single endpoint hosts at once, everybody else joins what answers there") {
  CHECK(c10d(view_of({own()})) == "host 0 epoch 1");
  CHECK(c10d(view_of({other()})) == "wait");
  CHECK(c10d(view_of({other(Answer::kUnreachable)}, 599s)) == "wait");
  CHECK(c10d(view_of({other(Answer::kUnresolved)}, 599s)) == "wait");
  CHECK(c10d(view_of({other(Answer::kStore, 1)})) == "join 0 epoch 1");
  CHECK(c10d(view_of({other(Answer::kStore, 7)})) == "join 0 epoch 7");
}

TEST_CASE("a taken port is joined when it is a store of this job, waited for when it says nothing, else an error") {
  CHECK(c10d(view_of({taken()})) == "wait");
  CHECK(c10d(view_of({taken(Answer::kStore, 1)})) == "join 0 epoch 1");
  CHECK(c10d(view_of({taken(Answer::kSilent)})) == "wait");
  for (const Answer answer : {Answer::kForeign, Answer::kStranger, Answer::kRefused}) {
    CHECK(c10d(view_of({taken(answer)})) == "fail: other:1 is odd");
    CHECK(c10d(view_of({other(answer)})) == "fail: other:1 is odd");
  }
}

TEST_CASE("is_host=True on every node changes nothing where the address has an owner") {
  for (const bool is_host : {true, false}) {
    auto owner = view_of({own()});
    owner.is_host = is_host;
    CHECK(c10d(owner) == "host 0 epoch 1");
    auto guest = view_of({other()}, 10s);
    guest.is_host = is_host;
    CHECK(c10d(guest) == "wait");
    guest.endpoints[0].finding = {Answer::kStore, 1, ""};
    CHECK(c10d(guest) == "join 0 epoch 1");
  }
}

TEST_CASE("node 0 hosts an address that is nobody's, once its owner had time to show itself") {
  auto view = view_of({other(Answer::kUnreachable)}, 1s);
  view.node_index = 0;
  CHECK(c10d(view) == "wait until 3000");
  view.elapsed = 3s;
  CHECK(c10d(view) == "host 0 epoch 1");
  view.node_index = 1;
  CHECK(c10d(view) == "wait");
  view.is_host = true;  // Pasted on all nodes: the index is what is known to differ.
  CHECK(c10d(view) == "wait");
  view.node_index.reset();
  CHECK(c10d(view) == "host 0 epoch 1");
  view.endpoints[0].finding = {Answer::kStore, 1, ""};
  CHECK(c10d(view) == "join 0 epoch 1");
}

TEST_CASE("behind the first endpoint each owner waits for its share of the time") {
  const auto dead = other(Answer::kUnreachable);
  CHECK(c10d(view_of({dead, own()}, 10s)) == "wait until 300000");
  CHECK(c10d(view_of({dead, own()}, 300s)) == "host 1 epoch 2 after another");
  CHECK(c10d(view_of({dead, dead, own()}, 399s)) == "wait until 400000");
  CHECK(c10d(view_of({dead, dead, own()}, 400s)) == "host 2 epoch 3 after another");
}

TEST_CASE("the first endpoint's owner looks at the others for a moment before it hosts") {
  CHECK(c10d(view_of({own(), other()})) == "wait until 1000");
  CHECK(c10d(view_of({own(), other(Answer::kUnreachable)})) == "host 0 epoch 1");
  CHECK(c10d(view_of({own(), other()}, 1s)) == "host 0 epoch 1");
  // Somebody has taken over from it while it was away.
  CHECK(c10d(view_of({own(), other(Answer::kStore, 2)})) == "wait until 300");
  CHECK(c10d(view_of({taken(Answer::kUnreachable), other(Answer::kStore, 2)})) == "join 1 epoch 2");
}

TEST_CASE("of several stores the newest is joined, after the others had a moment to answer") {
  CHECK(c10d(view_of({other(Answer::kStore, 1), other(Answer::kStore, 2)})) == "join 1 epoch 2");
  CHECK(c10d(view_of({other(Answer::kStore, 1), other()})) == "wait until 300");
  auto view = view_of({other(Answer::kStore, 1), other()}, 2s);
  view.joinable_for = 300ms;
  CHECK(c10d(view) == "join 0 epoch 1");
}

TEST_CASE("a thawed old host is not joined") {
  auto view = view_of({other(Answer::kStore, 1)});
  view.last_epoch = 2;
  CHECK(c10d(view) == "wait");
  CHECK(fixed(view, false) == "wait");
  view.endpoints.push_back(other(Answer::kStore, 2));
  CHECK(c10d(view) == "join 1 epoch 2");
}

TEST_CASE("after a loss the next endpoint hosts at once, the ones behind it in their turn, and the list goes round") {
  const auto dead = other(Answer::kUnreachable);
  auto view = view_of({dead, own(), dead}, 1ms);
  view.last_epoch = 1;
  view.lost = 0;
  CHECK(c10d(view) == "host 1 epoch 2 after another");
  view.endpoints = {dead, dead, own()};
  CHECK(c10d(view) == "wait until 200000");
  view.elapsed = 200s;
  CHECK(c10d(view) == "host 2 epoch 3 after another");
  view = view_of({own(), dead, dead}, 1ms);
  view.last_epoch = 5;
  view.lost = 2;
  CHECK(c10d(view) == "host 0 epoch 6 after another");
  // The lost endpoint itself answers again: its connection was cut, or its agent was started anew.
  view.endpoints = {dead, dead, other(Answer::kStore, 5)};
  CHECK(c10d(view) == "join 2 epoch 5");
}

TEST_CASE("a list goes on behind an endpoint that a stranger holds, and fails when all are held") {
  for (const Answer answer : {Answer::kStranger, Answer::kForeign}) {
    CHECK(c10d(view_of({other(Answer::kUnreachable), other(answer)})) == "wait");
    CHECK(c10d(view_of({other(answer), own()})) == "host 1 epoch 2 after another");
    CHECK(c10d(view_of({other(answer), other(Answer::kUnreachable), own()})) == "wait until 200000");
    CHECK(c10d(view_of({taken(answer), other(Answer::kUnreachable)})) == "wait");
    CHECK(c10d(view_of({taken(answer), other(Answer::kStore, 2)})) == "join 1 epoch 2");
    CHECK(c10d(view_of({other(answer), taken(answer)})) == "fail: other:1 is odd");
  }
  CHECK(c10d(view_of({other(Answer::kUnreachable), other(Answer::kRefused)})) == "fail: other:1 is odd");
}

TEST_CASE("static: node rank 0 hosts whatever the address, the others join") {
  CHECK(fixed(view_of({other()}), true) == "host 0 epoch 1");
  CHECK(fixed(view_of({own()}), false) == "wait");
  CHECK(fixed(view_of({other(Answer::kUnreachable)}), false) == "wait");
  CHECK(fixed(view_of({other(Answer::kStore, 1)}), false) == "join 0 epoch 1");
  CHECK(fixed(view_of({other(Answer::kStranger)}), false) == "fail: other:1 is odd");
  CHECK(fixed(view_of({taken(Answer::kStranger)}), true) == "fail: other:1 is odd");
  CHECK(fixed(view_of({taken(Answer::kSilent)}), true) == "wait");
  CHECK(fixed(view_of({taken(Answer::kStore, 1)}), true) ==
        "fail: another agent of this run hosts other:1 already: two agents have node rank 0; give each node its own "
        "--node-rank");
}

TEST_CASE(
    "a host that waits for a quorum gives way to a newer one at once, to an older one when that keeps its place") {
  const auto waiting = [](Answer answer, std::uint64_t epoch, milliseconds answering_for, std::size_t own_place = 0) {
    auto view = view_of({other(answer, epoch), other(answer, epoch)}, 60s);
    view.endpoints[own_place].finding = {Answer::kStore, 3, ""};
    view.endpoints[1 - own_place].answering_for = answering_for;
    view.lost = own_place;
    view.last_epoch = 3;
    return text(choose_rival(view));
  };
  CHECK(waiting(Answer::kStore, 4, 0ms) == "join 1 epoch 4");
  CHECK(waiting(Answer::kStore, 2, 0ms) == "wait until 68000");
  CHECK(waiting(Answer::kStore, 2, kRivalTime) == "join 1 epoch 2");
  CHECK(waiting(Answer::kUnreachable, 0, 0ms) == "wait");
  // Of two equal ones the first in the list stays.
  CHECK(waiting(Answer::kStore, 3, 0ms, 0) == "wait until 68000");
  CHECK(waiting(Answer::kStore, 3, 0ms, 1) == "join 0 epoch 3");
}
