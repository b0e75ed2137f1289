#include "agent/man_page.hpp"

#include "agent/option_table.hpp"

#include <string_view>

namespace tensorplay::agent {
namespace {

/// Text that roff must not read as commands or as hyphens.
std::string roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
  for (const char letter : text) {
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
  }
  return out;
}

class PageWriter {
 public:
  std::string write() {
    out_ += ".TH TPRUN 1 \"\" \"tprun\" \"User Commands\"\n";
    section("NAME");
    text("tprun - start programs that work together, watch them, and say which one failed first");
    section("SYNOPSIS");
    out_ += ".B tprun\n[\\fIoptions\\fR] \\fIPROGRAM\\fR [\\fIarguments\\fR]\n";
    section("DESCRIPTION");
    text(
        "tprun starts copies of a program on this node, gives each its rank and the others' meeting point through the "
        "environment, watches them, starts all again when one fails and --max-restarts allows it, and ends with a "
        "report that names the failure that came first. It takes the command line of torchrun and gives the "
        "environment of torchrun, so a PyTorch script runs under it as it is.");
    next_paragraph();
    text(
        "PROGRAM is an executable file, a .py file or a file without execute permission (run by Python), or with -m a "
        "Python module. A bare name is looked for in this folder, then in PATH. Python is what PYTHON_EXEC names, else "
        "the python beside tprun, else that of VIRTUAL_ENV or CONDA_PREFIX, else python3 in PATH; it is run "
        "unbuffered.");
    next_paragraph();
    text(
        "Every word behind PROGRAM is the program's own, whatever it looks like; one -- directly before or directly "
        "after PROGRAM is dropped. In the program's words ${local_rank} and $local_rank become the worker's local "
        "rank; other text with a dollar sign stays as it is.");
    section("OPTIONS");
    text(
        "A name may be written with - or _ between its words and be cut short while it stays unambiguous. A value "
        "follows as the next word or after =.");
    for (const OptionGroup group : kOptionGroups) options(group);
    section("ENVIRONMENT");
    text(
        "Every option but --config, --print-completion, --version and --help can be given as TPRUN_<NAME>, such as "
        "TPRUN_NPROC_PER_NODE, and those of torchrun as PET_<NAME>. Flags are on for 1 and off for 0. The command line "
        "wins over TPRUN_<NAME>, then PET_<NAME>, then the file of --config.");
    section("EXIT STATUS");
    term("0", "All workers ended well and no signal stopped the job.");
    term("1", "Only under the name torchrun: a worker failed.");
    term("2", "The command line, the environment or the configuration file is wrong.");
    term("70", "An error of tprun itself.");
    term("75", "The nodes did not find each other; worth another try.");
    term("126, 127", "The program cannot be executed; there is no such program.");
    term("128 + N", "The worker that failed first was killed by signal N.");
    text(
        "Otherwise the exit code of the worker that failed first. When tprun itself is stopped by a signal it ends by "
        "that signal.");
    section("FILES");
    term("configs/tprun.toml", "An example of the file of --config, with every key.");
    section("EXAMPLES");
    example("Four workers on this node:", "tprun --nproc-per-node=4 train.py --epochs 3");
    example("One for each GPU, started again up to three times:",
            "tprun --nproc-per-node=gpu --max-restarts=3 ./train");
    example("Their output in files, stdout shown as well:",
            "tprun --nproc-per-node=2 -r 3 -t 1 --log-dir=logs train.py");
    example("What would be run, and why:", "tprun --nproc-per-node=8 --dry-run train.py");
    section("SEE ALSO");
    text("tpstore(1) looks into the store that workers meet at.");
    return std::move(out_);
  }

 private:
  void section(std::string_view title) { out_ += ".SH " + std::string(title) + "\n"; }
  void next_paragraph() { out_ += ".PP\n"; }
  void text(std::string_view words) { out_ += roff(words) + "\n"; }
  void term(std::string_view name, std::string_view says) {
    out_ += ".TP\n.B " + roff(name) + "\n" + roff(says) + "\n";
  }
  void example(std::string_view says, std::string_view line) {
    out_ += ".PP\n" + roff(says) + "\n.PP\n.nf\n.RS\n" + roff(line) + "\n.RE\n.fi\n";
  }

  void options(OptionGroup group) {
    out_ += ".SS \"" + std::string(group_title(group)) + "\"\n";
    for (const OptionSpec& spec : option_table()) {
      if (spec.group != group) continue;
      out_ += ".TP\n";
      if (spec.letter != 0) out_ += std::string("\\fB\\-") + spec.letter + "\\fR, ";
      out_ += "\\fB\\-\\-" + roff(spec.name) + "\\fR";
      if (!spec.value_name.empty()) out_ += "=\\fI" + roff(spec.value_name) + "\\fR";
      std::string says(spec.help);
      says[0] = static_cast<char>(says[0] >= 'a' && says[0] <= 'z' ? says[0] - 'a' + 'A' : says[0]);
      says += '.';
      if (!spec.details.empty()) says.append(" ").append(spec.details);
      if (!spec.fallback.empty()) says.append(" Default: ").append(spec.fallback).append(".");
      out_ += "\n" + roff(says) + "\n";
    }
  }

  std::string out_;
};

}  // namespace

std::string man_page() {
  return PageWriter().write();
}

}  // namespace tensorplay::agent
