#include "tensorplay/profiler.hpp"

#include "tensorplay/distributed.hpp"
#include "tests/support/rank_threads.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>

using namespace tensorplay;
using namespace tensorplay::distributed;
using profiler::Event;
using tensorplay::testing::all_well;
using tensorplay::testing::run_ranks;

namespace {

std::vector<Event> of_kind(const std::vector<Event>& events, Event::Kind kind) {
  std::vector<Event> result;
  std::copy_if(events.begin(), events.end(), std::back_inserter(result), [&](const auto& e) { return e.kind == kind; });
  return result;
}

long count(const std::vector<Event>& events, const std::string& name, const std::string& collective = "") {
  return std::count_if(events.begin(), events.end(), [&](const Event& event) {
    return event.name == name && (collective.empty() || event.collective_name == collective);
  });
}

/// Every operation once; both ranks are threads of this process, so a profile sees each twice.
void do_everything(int rank) {
  const Tensor one = ones({4});
  const Tensor two = ones({8});
  broadcast(one);
  all_reduce(one);
  reduce(one);
  all_gather({zeros({4}), zeros({4})}, one);
  all_gather_single(two, one);
  reduce_scatter(one, {ones({4}), ones({4})});
  reduce_scatter_single(one, two);
  all_to_all_single(zeros({8}), two);
  barrier();
  all_reduce(one, {.async_op = true})->wait();
  if (rank == 0) {
    send(one, {.dst = 1});
  } else {
    recv(one, {.src = 0});
  }
}

}  // namespace

TEST_CASE("every collective, transfer and wait is recorded under torch's names") {
  const profiler::profile profile;
  REQUIRE(run_ranks(2, do_everything) == all_well(2));
  const auto events = profile.events();
  for (const char* name : {"gloo:broadcast", "gloo:reduce", "gloo:all_gather", "gloo:_all_gather_base",
                           "gloo:reduce_scatter", "gloo:_reduce_scatter_base", "gloo:all_to_all", "gloo:barrier"}) {
    INFO(name);
    REQUIRE(count(events, name) == 2);
  }
  REQUIRE(count(events, "gloo:all_reduce") == 4);
  REQUIRE(count(events, "gloo:send") == 1);
  REQUIRE(count(events, "gloo:recv") == 1);
  REQUIRE(count(events, "wait", "all_reduce") == 2);
  REQUIRE(count(events, "record_param_comms", "allreduce") == 4);
  REQUIRE(count(events, "record_param_comms", "_allgather_base") == 2);

  const auto operations = of_kind(events, Event::Kind::kOperation);
  const auto reduced = std::find_if(operations.begin(), operations.end(),
                                    [](const Event& event) { return event.name == "gloo:_reduce_scatter_base"; });
  REQUIRE(reduced->dtype == "float32");
  REQUIRE(reduced->in_elements == 8);
  REQUIRE(reduced->out_elements == 4);
  REQUIRE(reduced->bytes == 32);
  REQUIRE(reduced->group_ranks == std::vector<int>{0, 1});
  REQUIRE(reduced->group_desc == "default_pg");
  REQUIRE(reduced->end_ns > reduced->start_ns);
  REQUIRE(std::is_sorted(events.begin(), events.end(),
                         [](const Event& a, const Event& b) { return a.start_ns < b.start_ns; }));
}

TEST_CASE("nothing is recorded before, after and beyond the limit") {
  profiler::profile before;
  before.stop();
  const profiler::profile small({.most_events = 3});
  REQUIRE(run_ranks(1, [](int) { all_reduce(ones({1})); }) == all_well(1));
  REQUIRE(before.events().empty());
  REQUIRE(small.events().size() == 2);
  REQUIRE(run_ranks(1, [](int) { all_reduce(ones({1})); }) == all_well(1));
  REQUIRE(small.events().size() == 3);
  REQUIRE(small.dropped_events() == 1);
}

TEST_CASE("an operation that fails is recorded with its error") {
  const profiler::profile profile;
  run_ranks(
      2,
      [](int rank) {
        if (rank == 0) barrier({.timeout = std::chrono::milliseconds(50)});
      },
      std::chrono::seconds(20));
  const auto events = of_kind(profile.events(), Event::Kind::kOperation);
  REQUIRE(events.size() == 1);
  REQUIRE_THAT(events[0].error, Catch::Contains("barrier"));
}

TEST_CASE("the table sums up by name, the most expensive first") {
  const profiler::profile profile;
  REQUIRE(run_ranks(2, [](int) {
            for (int i = 0; i < 5; ++i) all_reduce(ones({100}));
          }) == all_well(2));
  const auto averages = profile.key_averages();
  const auto found = std::find_if(averages.begin(), averages.end(),
                                  [](const auto& average) { return average.key == "gloo:all_reduce"; });
  REQUIRE(found->count == 10);
  REQUIRE(found->bytes == 10 * 400);
  REQUIRE(found->least_ns <= found->mean_ns());
  REQUIRE(found->mean_ns() <= static_cast<double>(found->most_ns));
  REQUIRE_THAT(profile.table(), Catch::Contains("gloo:all_reduce") && Catch::Contains("# of Calls"));
}

TEST_CASE("the trace is what Chrome and Perfetto read") {
  const testing::TemporaryDirectory folder;
  const autograd::profiler::profile profile;
  REQUIRE(run_ranks(2, [](int) {
            const profiler::record_function scope("a \"step\"");
            all_to_all_single(zeros({4}), ones({4}), {.output_split_sizes = {2, 2}, .input_split_sizes = {2, 2}});
          }) == all_well(2));
  profile.export_chrome_trace(folder.file("trace.json"));
  std::ifstream file(folder.file("trace.json"));
  const auto trace = nlohmann::json::parse(file);
  int operations = 0;
  int scopes = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    REQUIRE(event.at("ph") == "X");
    REQUIRE(event.at("dur").get<double>() >= 0);
    scopes += event.at("name") == "a \"step\"";
    if (event.at("name") != "gloo:all_to_all") continue;
    ++operations;
    const auto& args = event.at("args");
    REQUIRE(args.at("Collective name") == "all_to_allv");
    REQUIRE(args.at("In split size") == nlohmann::json({2, 2}));
    REQUIRE(args.at("Group size") == 2);
    REQUIRE(args.at("dtype") == "float32");
  }
  REQUIRE(operations == 2);
  REQUIRE(scopes == 2);
  REQUIRE_THROWS_WITH(profile.export_chrome_trace("/no/such/folder/trace.json"), Catch::Contains("cannot be made"));
}
