#include "agent/config_file.hpp"

#include "agent/usage_error.hpp"
#include "tests/agent/fake_machine.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_files.hpp"

#include <algorithm>
#include <regex>

using namespace tensorplay::agent;
using tensorplay::tests::source_file;

namespace {

Settings read(const std::string& text) {
  FakeMachine machine;
  machine.add_file("job.toml", text);
  Settings settings;
  read_config_file("--config=job.toml", "job.toml", machine, settings);
  return settings;
}

std::string value(const Settings& settings, OptionId id) {
  return settings.value_or(id, "(not given)");
}

std::string complaint(const std::string& text) {
  try {
    read(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(none)";
}

/// configs/tprun.toml with every key taken into use.
std::string example_in_use() {
  return std::regex_replace(source_file("configs/tprun.toml"), std::regex("(^|\n)#([a-z][a-z-]* = )"), "$1$2");
}

}  // namespace

TEST_CASE("numbers, texts, switches, lists and tables become the options' values") {
  const Settings settings = read(
      "nproc-per-node = 4\nnnodes = '1:4'\nmodule = true\nno_python = false\nshutdown-timeout = 2.5\n"
      "local-ranks-filter = [0, 3]\nduplicate-stdout-filters = ['a,b', 'c']\nredirects = {0 = 1, 12 = 3}\n"
      "[rdzv-conf]\njoin_timeout = 60\nis_host = true\n");
  CHECK(value(settings, OptionId::kNprocPerNode) == "4");
  CHECK(value(settings, OptionId::kNnodes) == "1:4");
  CHECK(settings.is_on(OptionId::kModule));
  CHECK_FALSE(settings.is_on(OptionId::kNoPython));
  CHECK(value(settings, OptionId::kShutdownTimeout) == "2.5");
  CHECK(value(settings, OptionId::kLocalRanksFilter) == "0,3");
  CHECK(value(settings, OptionId::kDuplicateStdoutFilters) == "a,,b,c");
  CHECK(value(settings, OptionId::kRedirects) == "0:1,12:3");
  CHECK(value(settings, OptionId::kRdzvConf) == "is_host=1,join_timeout=60");
  CHECK(settings.quoted(OptionId::kNnodes) == "job.toml:2: nnodes=1:4");
}

TEST_CASE("a wrong key, value or file is named with its line") {
  CHECK(complaint("\nnproc-per-nodes = 4") == "job.toml:2: nproc-per-nodes: no such key; did you mean nproc-per-node?");
  CHECK(complaint("help = true") == "job.toml:1: help: no such key; keys are named as options are, without --");
  CHECK(complaint("module = 1") == "job.toml:1: module: neither on nor off; give true or false");
  CHECK(complaint("nnodes = true") == "job.toml:1: nnodes: takes a value, not true or false");
  CHECK(complaint("nnodes = [1]") == "job.toml:1: nnodes: takes one value, not a list");
  CHECK(complaint("[nnodes]") == "job.toml:1: nnodes: takes one value, not a table");
  CHECK(complaint("a = = b").starts_with("job.toml:1: not TOML: "));
  Settings settings;
  CHECK_THROWS_WITH(read_config_file("--config=gone.toml", "gone.toml", FakeMachine(), settings),
                    "--config=gone.toml: cannot be read; give a TOML file");
}

TEST_CASE("the example file shows every option that a file can hold, and all its keys are accepted") {
  const Settings settings = read(example_in_use());
  for (const OptionSpec& spec : option_table()) {
    INFO(spec.name);
    CHECK(settings.is_given(spec.id) == spec.is_setting);
  }
}

TEST_CASE("the example file as it is changes nothing") {
  const Settings settings = read(source_file("configs/tprun.toml"));
  for (const OptionSpec& spec : option_table()) CHECK_FALSE(settings.is_given(spec.id));
}
