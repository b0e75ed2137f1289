#include "agent/command_line.hpp"

#include "agent/usage_error.hpp"
#include "tests/support/catch.hpp"

using namespace tensorplay::agent;
using Words = std::vector<std::string>;

namespace {

CommandLine parse(const Words& words, Front front = Front::kTprun) {
  return parse_command_line(words, front);
}

std::string value(const CommandLine& line, OptionId id) {
  return line.settings.is_given(id) ? line.settings.find(id)->value : "(not given)";
}

std::string complaint(const Words& words, Front front = Front::kTprun) {
  try {
    parse(words, front);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(none)";
}

}  // namespace

TEST_CASE("an option is read in every spelling torchrun takes") {
  for (const Words& words :
       {Words{"--nproc-per-node", "3"}, Words{"--nproc_per_node", "3"}, Words{"--nproc_per-node=3"},
        Words{"--nproc-per-node=3"}, Words{"--np", "3"}, Words{"--nproc-per=3"}}) {
    CHECK(value(parse(words), OptionId::kNprocPerNode) == "3");
  }
  for (const Words& words : {Words{"-r", "3"}, Words{"-r3"}, Words{"-r=3"}, Words{"--redirects=3"}, Words{"-mr3"}}) {
    CHECK(value(parse(words), OptionId::kRedirects) == "3");
  }
  CHECK(value(parse({"--role", ""}), OptionId::kRole).empty());
  CHECK(value(parse({"--role="}), OptionId::kRole).empty());
  CHECK(value(parse({"--role=a=b"}), OptionId::kRole) == "a=b");
  CHECK(value(parse({"--role", "a", "--role", "b"}), OptionId::kRole) == "b");
  CHECK(value(parse({"--max-restarts", "-1"}), OptionId::kMaxRestarts) == "-1");
  CHECK(value(parse({"--log-line-prefix-template", "- x"}), OptionId::kLogLinePrefixTemplate) == "- x");
}

TEST_CASE("every word behind the program is the program's own") {
  const Words own = {"--nnodes", "3", "-r", "--r", "--run", "-m", "--help", "--version", "@file", "", "--", "-x"};
  Words words = {"--standalone", "train.py"};
  words.insert(words.end(), own.begin(), own.end());
  const CommandLine line = parse(words);
  Words expected = {"train.py"};
  expected.insert(expected.end(), own.begin(), own.end());
  CHECK(line.program == expected);
  CHECK(value(line, OptionId::kNnodes) == "(not given)");
}

TEST_CASE("one separator beside the program is eaten, not one on each side") {
  CHECK(parse({"--", "s.py", "--nnodes"}).program == Words{"s.py", "--nnodes"});
  CHECK(parse({"s.py", "--", "--foo"}).program == Words{"s.py", "--foo"});
  CHECK(parse({"s.py", "--", "--", "x"}).program == Words{"s.py", "--", "x"});
  CHECK(parse({"s.py", "a", "--", "b"}).program == Words{"s.py", "a", "--", "b"});
  CHECK(parse({"--", "s.py", "--", "x"}).program == Words{"s.py", "--", "x"});
  CHECK(parse({"--", "--odd-name", "x"}).program == Words{"--odd-name", "x"});
  CHECK_FALSE(parse({"--"}).has_program);
}

TEST_CASE("an empty word or a dash can be the program") {
  CHECK(parse({""}).has_program);
  CHECK(parse({"", "x"}).program == Words{"", "x"});
  CHECK(parse({"-", "x"}).program == Words{"-", "x"});
}

TEST_CASE("an abbreviation that is unambiguous in torchrun stays so here") {
  CHECK(parse({"--re", "3"}).settings.is_given(OptionId::kRedirects));  // Not --report.
  CHECK(parse({"--ro", "x"}).settings.is_given(OptionId::kRole));
  CHECK(parse({"--std", "all"}).settings.is_given(OptionId::kStdin));
  CHECK(parse({"--run"}).settings.is_given(OptionId::kRunPath));
  CHECK(complaint({"--rdzv"}) ==
        "--rdzv: may stand for --rdzv-backend, --rdzv-endpoint, --rdzv-id or --rdzv-conf; write more of it");
}

TEST_CASE("a wrong word is named with what would be right") {
  CHECK(complaint({"--nproc-per-nodes=2", "x"}) == "--nproc-per-nodes: no such option; did you mean --nproc-per-node?");
  CHECK(complaint({"--nprocs-per-node=2", "x"}) == "--nprocs-per-node: no such option; did you mean --nproc-per-node?");
  CHECK(complaint({"--zebra"}) ==
        "--zebra: no such option; --help lists them, and the program's own options go behind the program");
  CHECK(complaint({"-q"}).starts_with("-q: no such option"));
  CHECK(complaint({"-5"}).starts_with("-5: no such option"));
  CHECK(complaint({"--standalone=1", "x"}) == "--standalone=1: takes no value; give --standalone");
  CHECK(complaint({"--role"}) == "--role: needs a value; give --role=NAME");
  CHECK(complaint({"--role", "--nnodes", "2"}) == "--role: needs a value but --nnodes follows; give --role=NAME");
  CHECK(complaint({"--role", "--", "x"}) == "--role: needs a value but -- follows; give --role=NAME");
}

TEST_CASE("the last word is remembered when an option took it for its value") {
  const std::vector<std::string> words{"--nproc-per-node", "4", "--role", "train.py"};
  const CommandLine line = parse_command_line(words, Front::kTprun);
  REQUIRE(line.last_taken);
  CHECK(line.last_taken->option == OptionId::kRole);
  CHECK(line.last_taken->word == "train.py");
  const std::vector<std::string> written{"--role=train.py"};
  CHECK_FALSE(parse_command_line(written, Front::kTprun).last_taken);
}

TEST_CASE("--use-env belongs to the legacy front alone") {
  CHECK(parse({"--use_env", "x"}, Front::kTplaunch).settings.is_on(OptionId::kUseEnv));
  CHECK(complaint({"--use-env", "x"}).starts_with("--use-env: no such option"));
}
