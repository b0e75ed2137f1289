#include "agent/help.hpp"

#include "agent/command_line.hpp"
#include "agent/launch_request.hpp"
#include "agent/option_table.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tensorplay::agent {
namespace {

class HelpPage {
 public:
  HelpPage(Front front, int width, bool colour)
      : front_(front), name_(front_name(front)), width_(std::clamp(width, 60, 110)), colour_(colour) {}

  std::string write() {
    out_ += title("Usage") + " " + bold(name_) + " [options] PROGRAM [arguments]\n\n";
    paragraph(
        front_ == Front::kTplaunch
            ? "Starts copies of a program that work together, as torch.distributed.launch does: --local-rank=N is "
              "put in front of the program's arguments unless --use-env is given."
            : "Starts copies of a program that work together, gives each its rank through the environment, "
              "watches them, starts all again when one fails, and says which one failed first and why.");
    paragraph(
        "PROGRAM is an executable, a .py file (run by Python), or with -m a Python module. Every word behind it is the "
        "program's own.");
    examples();
    for (const OptionGroup group : kOptionGroups) options(group);
    paragraph(
        "Names may be written with '-' or '_' and cut short while they stay unambiguous. Every option can also be "
        "given "
        "as TPRUN_<NAME> in the environment (TPRUN_NPROC_PER_NODE=4; torchrun's PET_<NAME> too) or in the file of "
        "--config. The command line wins over TPRUN_*, then PET_*, then the file.");
    out_ += title("Exit code") + "\n";
    paragraph(front_ == Front::kTorchrun
                  ? "0 when all workers ended well, 1 when one failed, 2 for a wrong command line."
                  : "0 when all workers ended well; else the code of the worker that failed first, or 128 + the signal "
                    "that killed it; 2 for a wrong command line; 126 or 127 for a program that cannot be run; 70 for "
                    "an error of tprun itself; 75 when the nodes did not find each other.");
    out_.pop_back();
    return std::move(out_);
  }

 private:
  std::string bold(const std::string& text) const { return colour_ ? "\033[1m" + text + "\033[0m" : text; }
  std::string title(const std::string& text) const { return colour_ ? "\033[1;36m" + text + "\033[0m" : text + ":"; }

  /// Breaks `text` into lines of at most `width_`, each after the first indented by `indent`.
  std::string wrapped(const std::string& text, std::size_t indent) const {
    std::string out;
    std::size_t column = indent, at = 0;
    while (at < text.size()) {
      std::size_t end = text.find(' ', at);
      if (end == std::string::npos) end = text.size();
      const std::size_t length = end - at;
      if (column > indent && column + 1 + length > static_cast<std::size_t>(width_)) {
        out += '\n' + std::string(indent, ' ');
        column = indent;
      } else if (column > indent) {
        out += ' ';
        ++column;
      }
      out += text.substr(at, length);
      column += length;
      at = end + 1;
    }
    return out;
  }

  void paragraph(const std::string& text) { out_ += wrapped(text, 0) + "\n\n"; }

  void examples() {
    out_ += title("Examples") + "\n";
    const std::string flag = front_ == Front::kTplaunch ? " --use-env" : "";
    const std::vector<std::pair<std::string, std::string>> lines = {
        {" --nproc-per-node=4 train.py --epochs 3",
         front_ == Front::kTplaunch ? "four workers, run by Python as train.py --local-rank=N --epochs 3"
                                    : "four workers, run by Python"},
        {flag + " --nproc-per-node=gpu --max-restarts=3 ./train", "one for each GPU, started again up to 3 times"},
        {flag + " --nproc-per-node=2 -r 3 -t 1 --log-dir=logs train.py", "keep their output, show stdout as well"},
        {flag + " --standalone --nproc-per-node=auto -m package.train", "a module, one worker for each GPU or CPU"},
        {flag + " --nproc-per-node=8 --dry-run train.py", "what would be run, and why"}};
    for (const auto& [line, says] : lines) {
      out_ += "  " + bold(name_ + line) + "\n      " + says + "\n";
    }
    out_ += "\n";
  }

  void options(OptionGroup group) {
    out_ += title(std::string(group_title(group))) + "\n";
    for (const OptionSpec& spec : option_table()) {
      if (spec.group != group || !is_known_to(spec, front_)) continue;
      std::string names("    --");
      if (spec.letter != 0) names.replace(0, 4, {'-', spec.letter, ',', ' '});
      names += spec.name;
      std::string value;
      if (!spec.value_name.empty()) value.append(1, '=').append(spec.value_name);
      std::string says(spec.help);
      if (!spec.fallback.empty()) says += " (default " + std::string(spec.fallback) + ")";
      constexpr std::size_t kColumn = 30;
      const std::size_t used = 2 + names.size() + value.size();
      out_ += "  " + bold(names) + value;
      out_ += used + 2 > kColumn ? "\n" + std::string(kColumn, ' ') : std::string(kColumn - used, ' ');
      out_ += wrapped(says, kColumn) + "\n";
    }
    out_ += "\n";
  }

  Front front_;
  std::string name_;
  int width_;
  bool colour_;
  std::string out_;
};

}  // namespace

std::string help_text(Front front, int width, bool colour) {
  return HelpPage(front, width, colour).write();
}

std::string version_text() {
  return std::string("tprun ") + TP_VERSION;
}

}  // namespace tensorplay::agent
