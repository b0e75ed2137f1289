#include "agent/completion.hpp"

#include "agent/command_line.hpp"
#include "agent/launch_request.hpp"
#include "agent/option_table.hpp"
#include "agent/option_values.hpp"
#include "agent/usage_error.hpp"

#include <vector>

namespace tensorplay::agent {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// Inside '...' of any shell here.
std::string single_quoted(std::string text) {
  return "'" + replaced(std::move(text), "'", "'\\''") + "'";
}

std::string words_of(const OptionSpec& spec) {
  return replaced(std::string(spec.choices), "|", " ");
}

class ScriptWriter {
 public:
  explicit ScriptWriter(Front front) : command_(front_name(front)) {
    for (const OptionSpec& spec : option_table()) {
      if (is_known_to(spec, front)) specs_.push_back(&spec);
    }
  }

  std::string bash() const {
    std::string names, flags, values;
    for (const OptionSpec* spec : specs_) {
      const std::string name = "--" + std::string(spec->name);
      const std::string both = spec->letter != 0 ? name + "|-" + spec->letter : name;
      names += (names.empty() ? "" : " ") + name;
      if (spec->kind == OptionKind::kFlag) flags += (flags.empty() ? "" : "|") + both;
      if (spec->hint == ValueHint::kNone) continue;
      values += "    " + both + ") ";
      if (spec->hint == ValueHint::kChoice) values += "_words='" + words_of(*spec) + "'";
      if (spec->hint == ValueHint::kFolder) values += "_kind=-d";
      if (spec->hint == ValueHint::kFile) values += "_kind=-f";
      values += " ;;\n";
    }
    std::string out = R"(# bash completion for @COMMAND@: options before the program, files behind it.
_@COMMAND@() {
  local current=${COMP_WORDS[COMP_CWORD]} at=1 option= word= _words= _kind=
  COMPREPLY=()
  while (( at < COMP_CWORD )); do
    word=${COMP_WORDS[at]//_/-} option=
    case $word in
    @FLAGS@) (( at += 1 )) ;;
    --) option=program; break ;;
    -*=*|-?[0-9]*) (( at += 1 )) ;;
    -*)
      option=$word
      (( at += 1 ))
      if [[ ${COMP_WORDS[at]} == = ]]; then
        if (( at == COMP_CWORD )); then current=; break; fi
        (( at += 1 ))
      fi
      (( at < COMP_CWORD )) || break
      option=
      (( at += 1 )) ;;
    *) option=program; break ;;
    esac
  done
  case $option in
@VALUES@  '')
    if [[ $current == -* ]]; then
      _words='@NAMES@'
    else
      mapfile -t COMPREPLY < <(compgen -f -- "$current"; [[ $current == */* ]] || compgen -c -- "$current")
      compopt -o filenames 2>/dev/null
      return
    fi ;;
  program) _kind=-f ;;
  esac
  if [[ -n $_words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$_words" -- "$current")
  elif [[ -n $_kind ]]; then
    mapfile -t COMPREPLY < <(compgen "$_kind" -- "$current")
    compopt -o filenames 2>/dev/null
  fi
}
complete -F _@COMMAND@ @COMMAND@
)";
    out = replaced(out, "@FLAGS@", flags);
    out = replaced(out, "@VALUES@", values);
    out = replaced(out, "@NAMES@", names);
    return replaced(out, "@COMMAND@", command_);
  }

  std::string zsh() const {
    std::string out = "#compdef " + command_ + "\n# zsh completion for " + command_ + ": put it as _" + command_ +
                      " into a folder of $fpath, or eval it.\n_" + command_ + "() {\n  _arguments -S -s \\\n";
    for (const OptionSpec* spec : specs_) {
      std::string help = replaced(replaced(std::string(spec->help), "[", "\\["), "]", "\\]");
      help = replaced(help, ":", "\\:");
      const bool has_value = spec->kind == OptionKind::kValue;
      std::string rest = "[" + help + "]";
      if (has_value) {
        rest += ":" + replaced(std::string(spec->value_name), ":", "\\:") + ":";
        if (spec->hint == ValueHint::kChoice) rest += "(" + words_of(*spec) + ")";
        if (spec->hint == ValueHint::kFolder) rest += "_files -/";
        if (spec->hint == ValueHint::kFile) rest += "_files";
      }
      out += "    " + single_quoted("--" + std::string(spec->name) + (has_value ? "=" : "") + rest) + " \\\n";
      if (spec->letter == 0) continue;
      out += "    " + single_quoted(std::string("-") + spec->letter + (has_value ? "+" : "") + rest) + " \\\n";
    }
    out += "    '(-)1:program:{ _command_names -e; _files }' \\\n    '*::argument:_files'\n}\n";
    return out + "if [ \"$funcstack[1]\" = _" + command_ + " ]; then\n  _" + command_ + " \"$@\"\nelse\n  compdef _" +
           command_ + " " + command_ + "\nfi\n";
  }

  std::string fish() const {
    std::string flags, out = "# fish completion for " + command_ + ": options before the program, files behind it.\n";
    for (const OptionSpec* spec : specs_) {
      if (spec->kind == OptionKind::kFlag) {
        flags += " --" + std::string(spec->name);
        if (spec->letter != 0) flags += std::string(" -") + spec->letter;
      }
    }
    out += "function __" + command_ + R"(_has_no_program
    set -l words (commandline -opc)
    set -l flags)" +
           flags + R"(
    set -l at 2
    while test $at -le (count $words)
        set -l word (string replace -a _ - -- $words[$at])
        switch $word
            case '--'
                return 1
            case '-*=*' '-?[0-9]*'
                set at (math $at + 1)
            case '-*'
                contains -- $word $flags; and set at (math $at + 1); or set at (math $at + 2)
            case '*'
                return 1
        end
    end
    return 0
end
)";
    for (const OptionSpec* spec : specs_) {
      out += "complete -c " + command_ + " -n __" + command_ + "_has_no_program -l " + std::string(spec->name);
      if (spec->letter != 0) out += std::string(" -s ") + spec->letter;
      if (spec->kind == OptionKind::kValue) out += " -r";
      if (spec->hint == ValueHint::kChoice) out += " -f -a '" + words_of(*spec) + "'";
      if (spec->hint == ValueHint::kFile) out += " -F";
      if (spec->hint == ValueHint::kFolder) out += " -f -a '(__fish_complete_directories)'";
      out += " -d " + single_quoted(std::string(spec->help)) + "\n";
    }
    return out;
  }

  std::string tcsh() const {
    std::string names, out;
    for (const OptionSpec* spec : specs_) {
      const std::string name(spec->name);
      names += (names.empty() ? "" : " ") + name;
      if (spec->hint == ValueHint::kChoice) {
        out += " 'n/--" + name + "/(" + words_of(*spec) + ")/' 'c/--" + name + "=/(" + words_of(*spec) + ")/'";
      }
      if (spec->hint == ValueHint::kFolder) out += " 'n/--" + name + "/d/' 'c/--" + name + "=/d/'";
      if (spec->hint == ValueHint::kFile) out += " 'n/--" + name + "/f/' 'c/--" + name + "=/f/'";
    }
    return "complete " + command_ + out + " 'c/--/(" + names + ")/' 'p/1/c/' 'p/*/f/'\n";
  }

 private:
  std::string command_;
  std::vector<const OptionSpec*> specs_;
};

}  // namespace

std::string completion_script(std::string_view shell, Front front) {
  const ScriptWriter writer(front);
  if (shell == "bash") return writer.bash();
  if (shell == "zsh") return writer.zsh();
  if (shell == "fish") return writer.fish();
  if (shell == "tcsh") return writer.tcsh();
  throw UsageError("--print-completion=" + std::string(shell) + ": no such shell; give bash, zsh, fish or tcsh");
}

}  // namespace tensorplay::agent
