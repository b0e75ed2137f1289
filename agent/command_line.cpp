// Not CLI11: what is hard here is knowing where the program starts, and whoever knows that has matched every word to
// its option already. Abbreviations over two spellings, torchrun's idea of which word can be a value, and messages
// that name a near miss are all outside what it offers; what would be left for it is a second parse of the same words.
#include "agent/command_line.hpp"

#include "agent/near_miss.hpp"
#include "agent/usage_error.hpp"

#include <algorithm>
#include <cctype>

namespace tensorplay::agent {
namespace {

bool is_negative_number(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return false;
  bool has_digit = false, has_dot = false;
  for (const char letter : word.substr(1)) {
    if (std::isdigit(static_cast<unsigned char>(letter)) != 0) {
      has_digit = true;
    } else if (letter == '.' && !has_dot) {
      has_dot = true;
    } else {
      return false;
    }
  }
  return has_digit;
}

const OptionSpec* find_letter(char letter) {
  for (const OptionSpec& spec : option_table()) {
    if (spec.letter != 0 && spec.letter == letter) return &spec;
  }
  return nullptr;
}

std::string_view name_of(std::string_view word) {
  return word.substr(2, word.find('=') - 2);
}

/// Options whose name begins with what was written. torchrun's come first: an abbreviation that means one of them there
/// must not become ambiguous through an option of ours.
std::vector<const OptionSpec*> options_beginning_with(std::string_view written, Front front) {
  std::string prefix(written);
  std::replace(prefix.begin(), prefix.end(), '_', '-');
  std::vector<const OptionSpec*> theirs, ours;
  for (const OptionSpec& spec : option_table()) {
    if (!is_known_to(spec, front) || !spec.name.starts_with(prefix)) continue;
    if (spec.id == OptionId::kHostMember || spec.id == OptionId::kStdinLifeline) continue;  // No person's.
    (spec.origin == OptionOrigin::kTprun ? ours : theirs).push_back(&spec);
  }
  return theirs.empty() ? ours : theirs;
}

std::string no_such_option(std::string_view written, Front front) {
  std::vector<std::string_view> names;
  for (const OptionSpec& spec : option_table()) {
    if (is_known_to(spec, front)) names.push_back(spec.name);
  }
  std::string message = "--" + std::string(written) + ": no such option; ";
  if (const auto guess = near_miss(written, names)) return message + "did you mean --" + std::string(*guess) + "?";
  return message + "--help lists them, and the program's own options go behind the program";
}

const OptionSpec& find_long_option(std::string_view written, Front front) {
  if (const OptionSpec* exact = find_option(written); exact != nullptr && is_known_to(*exact, front)) return *exact;
  const auto candidates = written.empty() ? std::vector<const OptionSpec*>{} : options_beginning_with(written, front);
  if (candidates.empty()) throw UsageError(no_such_option(written, front));
  if (candidates.size() > 1) {
    std::string message = "--" + std::string(written) + ": may stand for ";
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (i > 0) message += i + 1 == candidates.size() ? " or " : ", ";
      message += "--" + std::string(candidates[i]->name);
    }
    throw UsageError(message + "; write more of it");
  }
  return *candidates.front();
}

/// Whether `word` may be the value of the option before it: anything that could not be an option itself.
bool can_be_value(const std::string& word) {
  if (word.empty() || word[0] != '-' || word == "-" || is_negative_number(word)) return true;
  if (word == "--") return false;
  return word.find(' ') != std::string::npos && word.find('=') > word.find(' ');
}

class Scanner {
 public:
  Scanner(std::span<const std::string> words, Front front) : words_(words), front_(front) {}

  CommandLine scan() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_];
      if (word == "--") {
        ++next_;
        if (next_ < words_.size()) take_program(true);
        break;
      }
      if (word.starts_with("--")) {
        take_long();
      } else if (word.size() > 1 && word[0] == '-' && !can_be_value(word)) {
        take_letters();
      } else if (is_negative_number(word)) {
        throw UsageError(word + ": no such option; to run a program of that name put -- before it");
      } else {
        take_program(false);
        break;
      }
    }
    return std::move(line_);
  }

 private:
  void take_program(bool after_separator) {
    line_.has_program = true;
    line_.program.push_back(words_[next_++]);
    if (!after_separator && next_ < words_.size() && words_[next_] == "--") ++next_;
    line_.program.insert(line_.program.end(), words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
    next_ = words_.size();
  }

  void take_long() {
    const std::size_t first = next_;
    const OptionSpec& spec = take_long_option();
    line_.places.push_back({spec.id, first, next_});
  }

  const OptionSpec& take_long_option() {
    const std::string& word = words_[next_++];
    const OptionSpec& spec = find_long_option(name_of(word), front_);
    const auto equals = word.find('=');
    if (spec.kind == OptionKind::kFlag) {
      if (equals != std::string::npos) throw UsageError(word + ": takes no value; give --" + std::string(spec.name));
      set(spec, "1");
    } else {
      set(spec, equals != std::string::npos ? word.substr(equals + 1) : take_value(spec));
    }
    return spec;
  }

  /// "-r3", "-r=3", "-r 3", "-m", and flags run together with what follows: "-mr3".
  void take_letters() {
    const std::string& word = words_[next_++];
    for (std::size_t at = 1; at < word.size(); ++at) {
      const OptionSpec* spec = find_letter(word[at]);
      if (spec == nullptr) {
        throw UsageError(word +
                         ": no such option; --help lists them, and the program's own options go behind the program");
      }
      if (spec->kind == OptionKind::kFlag) {
        set(*spec, "1");
        continue;
      }
      std::string value = word.substr(at + 1);
      if (value.starts_with('=')) value.erase(0, 1);
      set(*spec, at + 1 < word.size() ? value : take_value(*spec));
      return;
    }
  }

  std::string take_value(const OptionSpec& spec) {
    const std::string name = "--" + std::string(spec.name);
    if (next_ == words_.size())
      throw UsageError(name + ": needs a value; give " + name + "=" + std::string(spec.value_name));
    const std::string& word = words_[next_];
    if (!can_be_value(word)) {
      throw UsageError(name + ": needs a value but " + word + " follows; give " + name + "=" +
                       std::string(spec.value_name));
    }
    ++next_;
    if (spec.hint == ValueHint::kFile) return word;
    if (next_ == words_.size()) {
      line_.last_taken = {spec.id, word};
    } else if (word.ends_with(".py") && words_[next_].starts_with('-')) {
      throw UsageError(took_the_program(spec, word));
    }
    return word;
  }

  void set(const OptionSpec& spec, std::string value) {
    line_.settings.set(spec.id, {std::move(value), Source::kCommandLine, "--" + std::string(spec.name)});
  }

  std::span<const std::string> words_;
  Front front_;
  std::size_t next_ = 0;
  CommandLine line_;
};

}  // namespace

bool is_known_to(const OptionSpec& spec, Front front) {
  return spec.origin != OptionOrigin::kTplaunch || front == Front::kTplaunch;
}

std::string took_the_program(const OptionSpec& spec, const std::string& word) {
  const std::string name = "--" + std::string(spec.name);
  return name + ": needs a value but " + word + ", a program, follows; give " + name + "=" +
         std::string(spec.value_name) + " " + word;
}

CommandLine parse_command_line(std::span<const std::string> words, Front front) {
  return Scanner(words, front).scan();
}

}  // namespace tensorplay::agent
