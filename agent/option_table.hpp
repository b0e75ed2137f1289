/// Every option of tprun, once: the parser, the environment, the configuration file, --help, the completion scripts
/// and the man page all read this table, so none of them can forget an option.
/// Thread rules: constant data, built at compile time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tensorplay::agent {

enum class OptionId : std::uint8_t {
  kNprocPerNode,
  kNnodes,
  kNodeRank,
  kStandalone,
  kRole,
  kModule,
  kNoPython,
  kRunPath,
  kUseEnv,
  kVirtualLocalRank,
  kNumaBinding,
  kStdin,
  kStartMethod,
  kMaxRestarts,
  kRestartWindow,
  kNoProgressLimit,
  kShutdownTimeout,
  kSignalsToHandle,
  kLeaveDaemons,
  kMonitorInterval,
  kLogDir,
  kRedirects,
  kTee,
  kLocalRanksFilter,
  kLogLinePrefixTemplate,
  kDuplicateStdoutFilters,
  kDuplicateStderrFilters,
  kReport,
  kLogsSpecs,
  kEventLogHandler,
  kRdzvBackend,
  kRdzvEndpoint,
  kRdzvId,
  kRdzvConf,
  kRdzvTokenFile,
  kMasterAddr,
  kMasterPort,
  kLocalAddr,
  kScheduler,
  kHosts,
  kHostfile,
  kSshCommand,
  kHostMember,
  kStdinLifeline,
  kDryRun,
  kJson,
  kConfig,
  kPrintCompletion,
  kVersion,
  kHelp,
  kCount,
};
inline constexpr std::size_t kOptionCount = static_cast<std::size_t>(OptionId::kCount);

enum class OptionKind : std::uint8_t { kFlag, kValue };

/// Who knows the option: torchrun (and so tprun), only tprun, or only torch.distributed.launch (and so tplaunch).
enum class OptionOrigin : std::uint8_t { kTorchrun, kTprun, kTplaunch };

enum class OptionGroup : std::uint8_t { kSize, kProgram, kFailure, kOutput, kNodes, kInspect };

/// What a shell offers after the option.
enum class ValueHint : std::uint8_t { kNone, kFile, kFolder, kChoice };

struct OptionSpec {
  OptionId id;
  OptionGroup group;
  OptionKind kind;
  OptionOrigin origin;
  std::string_view name;        ///< Long name without dashes; '_' may stand for '-' wherever it is read.
  char letter;                  ///< Short form, or 0.
  std::string_view value_name;  ///< What stands for the value in texts; empty for flags.
  std::string_view fallback;    ///< Default, as shown; empty when there is none worth showing.
  std::string_view choices;     ///< Separated by '|'; empty when open. Not closed: a value may be outside them.
  ValueHint hint;
  bool has_pet;              ///< torchrun reads PET_<NAME> for it.
  bool is_setting;           ///< May stand in the environment (TPRUN_<NAME>) and in the configuration file.
  std::string_view help;     ///< One line for --help.
  std::string_view details;  ///< Further sentences for the man page; may be empty.
};

/// In the order of --help; the index of an entry is its id.
std::span<const OptionSpec, kOptionCount> option_table();

const OptionSpec& option_spec(OptionId id);

/// Heading of a group in --help and the man page.
std::string_view group_title(OptionGroup group);
inline constexpr OptionGroup kOptionGroups[] = {OptionGroup::kSize,   OptionGroup::kProgram, OptionGroup::kFailure,
                                                OptionGroup::kOutput, OptionGroup::kNodes,   OptionGroup::kInspect};

/// The option of this exact long name ('-' and '_' alike), or nullptr.
const OptionSpec* find_option(std::string_view name);

}  // namespace tensorplay::agent
