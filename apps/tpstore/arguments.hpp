/// tpstore's command line, read into values.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace tpstore {

/// What tpstore's exit code means; the man page has the table for people.
namespace exit_code {
inline constexpr int kSuccess = 0;
inline constexpr int kAbsent = 1;       ///< No such key, an empty queue, a comparison that failed.
inline constexpr int kUsage = 2;        ///< The command line is wrong.
inline constexpr int kTimedOut = 3;     ///< What was waited for did not come in time.
inline constexpr int kUnreachable = 4;  ///< No store answers there, or the connection was lost.
inline constexpr int kRefused = 5;      ///< The store cannot do that, or the value is beyond its limits.
inline constexpr int kInternalError = 70;
}  // namespace exit_code

enum class Format { kText, kRaw, kJson };

struct Arguments {
  std::string command;
  std::vector<std::string> operands;
  std::string endpoint;  ///< Empty: from MASTER_ADDR and MASTER_PORT.
  std::chrono::milliseconds timeout{10'000};
  Format format = Format::kText;
  bool raw_keys = false;       ///< Keys are as on the wire: no slash is put in front.
  bool waits = false;          ///< get and queue-pop wait for what is not there yet.
  std::string host;            ///< serve: what to bind.
  std::uint16_t port = 29500;  ///< serve
  bool wants_help = false;
  bool wants_version = false;
};

/// A mistake on the command line, told in one line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads the words after the program's name. Options may stand before, between and after operands, with their value in
/// the same word (`--timeout=5`) or the next; after `--` every word is an operand, and `-` always is. Throws
/// UsageError.
Arguments parse_arguments(const std::vector<std::string>& words);

/// What a command is called, what it takes and what it does, for parsing and for help.
struct CommandInfo {
  const char* name;
  const char* operands;  ///< "KEY [DELTA]"
  int least_operands;
  int most_operands;  ///< -1: any number.
  const char* summary;
};
const std::vector<CommandInfo>& all_commands();

/// Null when there is none of that name.
const CommandInfo* find_command(const std::string& name);

/// "; did you mean X?" for the candidate nearest to `word`, or nothing when none is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace tpstore
