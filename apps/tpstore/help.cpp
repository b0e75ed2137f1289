#include "apps/tpstore/help.hpp"

#include <cstring>

namespace tpstore {
namespace {

constexpr const char* kOptions = R"(
Options
  -e, --endpoint HOST:PORT  the store; without it MASTER_ADDR and MASTER_PORT from the environment
  -t, --timeout SECONDS     how long to wait for the store, and for keys with wait, barrier and --wait (10)
      --wait                get, multi-get, queue-pop: wait for what is not there yet
      --raw                 keys are as on the wire: no slash is put in front, hidden keys such as init/ can be reached
  -o, --output FORMAT       text (values readable, one a line), raw (the bytes alone) or json; --json for short
      --host ADDRESS        serve: the address to bind (127.0.0.1; :: for all)
      --port PORT           serve: the port (29500; 0 for any free one)
  -h, --help                this text; after a command its own
      --version
)";

constexpr const char* kExamples = R"(
Examples
  A job hangs at start-up: who has come?
      tpstore list --endpoint node1:29500
  Wait in a script until rank 0 has written a key, at most a minute:
      tpstore wait ready --timeout 60 && echo go
  Store a file, and read it back:
      tpstore set config - < config.yaml
      tpstore get config --output raw > copy.yaml
  A counter, a lock, a queue of work:
      tpstore add done 1
      tpstore compare-set lock "" "$HOSTNAME" && echo mine
      tpstore queue-push work task1; tpstore queue-pop work --wait
  A store for a few scripts, on a free port:
      tpstore serve --port 0
)";

constexpr const char* kExitCodes = R"(
Exit codes
  0  done        1  absent: no such key, empty queue, comparison failed      2  wrong command line
  3  timed out   4  no store answers there, or the connection was lost       5  the store refuses, or cannot do that
)";

std::string command_line(const CommandInfo& command) {
  std::string line = std::string("  ") + command.name;
  if (std::strlen(command.operands) > 0) line += std::string(" ") + command.operands;
  constexpr std::size_t kColumn = 38;
  line.resize(std::max(line.size() + 1, kColumn), ' ');
  return line + command.summary + '\n';
}

}  // namespace

std::string help_text(const std::string& command) {
  if (const CommandInfo* info = find_command(command)) {
    return std::string("tpstore ") + info->name + ' ' + info->operands + ": " + info->summary + '\n' + kOptions +
           kExitCodes;
  }
  std::string text =
      "tpstore COMMAND [WORDS] [OPTIONS]: look into a TCPStore, tprun's or PyTorch's, change it, or be one\n"
      "\nCommands\n";
  for (const auto& info : all_commands()) text += command_line(info);
  text += "  A VALUE of - is read from standard input.\n";
  return text + kOptions + kExamples + kExitCodes;
}

}  // namespace tpstore
