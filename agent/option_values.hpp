/// Reads the values of options: text in, typed value out. Each function takes `where`, the text that a message begins
/// with ("--nnodes=a"), and throws UsageError saying what would be right. Cores without I/O.
#pragma once

#include "agent/launch_plan.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensorplay::agent {

/// A whole number from `least` to `most`; surrounding blanks and a sign are allowed. `what` names it in the message:
/// "a count".
long parse_whole(const std::string& where, std::string_view text, long least, long most, const std::string& what);

/// The number in `text`, or nullopt where it is not a whole number that fits.
std::optional<long> as_whole(std::string_view text);

/// On or off, as in an environment variable: a whole number as torchrun reads it, or true, yes, on and their opposites.
bool parse_switch(const std::string& where, std::string_view text);

/// "4" or "1:4", each at least 1, in order.
std::pair<int, int> parse_node_range(const std::string& where, std::string_view text);

/// "3", or "0:1,12:3": local rank and mask, ranks of any number of digits; ranks not listed have none.
StreamSelection parse_streams(const std::string& where, std::string_view text);

/// "0,2": local ranks; empty for all.
std::vector<int> parse_ranks(const std::string& where, std::string_view text);

/// Comma-separated texts in which two commas stand for one.
std::vector<std::string> parse_filters(std::string_view text);

/// Seconds, whole or with a fraction, at least `least`.
std::chrono::milliseconds parse_seconds(const std::string& where, std::string_view text, double least);

/// "SIGTERM,INT,10". Names that are no signal, and those that cannot be caught, are skipped and noted.
std::vector<int> parse_signals(const std::string& where, std::string_view text, std::vector<std::string>& notes);

/// "key=value,key=value". Both sides are trimmed; a value may hold '='. Unknown, empty and repeated keys are noted.
std::map<std::string, std::string> parse_rdzv_conf(const std::string& where, std::string_view text,
                                                   std::vector<std::string>& notes);

/// Splits at every `separator`; always at least one part.
std::vector<std::string_view> split(std::string_view text, char separator);

std::string_view trimmed(std::string_view text);

}  // namespace tensorplay::agent
