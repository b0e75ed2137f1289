// What tprun tells people about itself: help, man page, completion scripts, and the tables in docs/.
#include "agent/command_line.hpp"
#include "agent/completion.hpp"
#include "agent/help.hpp"
#include "agent/man_page.hpp"
#include "agent/option_table.hpp"
#include "agent/usage_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_files.hpp"

#include <regex>
#include <set>
#include <sstream>

using namespace tensorplay::agent;
using namespace tensorplay::tests;

namespace {

/// First group of every match.
std::set<std::string> all_matches(const std::string& text, const std::string& pattern) {
  std::set<std::string> out;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) out.insert((*at)[1]);
  return out;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("help names every option the front knows, fits the width, and is plain without a terminal") {
  const std::string help = help_text(Front::kTprun, 80, false);
  for (const OptionSpec& spec : option_table()) {
    INFO(spec.name);
    CHECK(holds(help, "--" + std::string(spec.name)) == is_known_to(spec, Front::kTprun));
  }
  CHECK_FALSE(holds(help, "\033["));
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK((line.size() <= 80 || line.starts_with("  tprun ")));
  }
  CHECK(holds(help_text(Front::kTplaunch, 80, false), "--use-env"));
  CHECK(holds(help_text(Front::kTprun, 80, true), "\033[1m"));
}

TEST_CASE("the manual page in docs is the one the option table gives") {
  if (rewrites()) write_source_file("docs/man/tprun.1", man_page());
  CHECK(source_file("docs/man/tprun.1") == man_page());
}

TEST_CASE("every shell's completion names every option") {
  for (const char* shell : {"bash", "zsh", "fish", "tcsh"}) {
    const std::string script = completion_script(shell, Front::kTprun);
    for (const OptionSpec& spec : option_table()) {
      INFO(shell << " " << spec.name);
      CHECK(holds(script, std::string(spec.name)) == is_known_to(spec, Front::kTprun));
    }
  }
  CHECK_THROWS_AS(completion_script("ksh", Front::kTprun), UsageError);
}

TEST_CASE("the compatibility table speaks of every option of torchrun") {
  const std::string table = source_file("docs/torchrun-compatibility.md");
  for (const OptionSpec& spec : option_table()) {
    if (spec.origin == OptionOrigin::kTprun) continue;
    INFO(spec.name);
    CHECK(holds(table, "`--" + std::string(spec.name) + "`"));
  }
}

TEST_CASE("docs and header list the same environment variables") {
  const auto named = all_matches(source_file("runtime/base/environment.hpp"), "= \"([A-Z][A-Z0-9_]*)\"");
  const auto documented = all_matches(source_file("docs/environment.md"), "\n\\| `([A-Z][A-Z0-9_]*)`");
  for (const std::string& name : named) {
    INFO(name << " is in the header");
    CHECK(documented.contains(name));
  }
  for (const std::string& name : documented) {
    INFO(name << " is in docs/environment.md");
    CHECK(named.contains(name));
  }
}

TEST_CASE("docs and header list the same exit codes") {
  const auto coded = all_matches(source_file("include/tensorplay/distributed/exit_codes.hpp"), "= ([0-9]+);");
  const auto documented = all_matches(source_file("docs/exit-codes.md"), "\n\\| `([0-9]+)");
  CHECK(coded == documented);
}
