/// Who starts whom, with which command: a tree, so that a thousand hosts do not need a thousand ssh on one. Cores.
#pragma once

#include "agent/environment_view.hpp"
#include "agent/hosts/host_list.hpp"
#include "agent/launch_plan.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace tensorplay::agent {

inline constexpr std::size_t kFanOut = 32;

/// Divides `members` (indexes of hosts, without the one who asks) among at most kFanOut branches of nearly the same
/// size. The first of each branch is started directly and starts the others of it.
std::vector<std::vector<std::size_t>> divide(const std::vector<std::size_t>& members, std::size_t fan_out = kFanOut);

/// The command that starts the relay on `host`: `ssh` split at blanks, the host, and `program` quoted for the shell
/// there. OpenSSH is told never to ask for anything, and to notice a connection that is dead.
std::vector<std::string> relay_command(const std::string& ssh, const std::string& host, const std::string& program);

/// "NAME=value" of everything that means something on another host too: not what a login there sets by itself (HOME,
/// USER, SSH_..., XDG_...), nor what belongs to this terminal or this place.
std::vector<std::string> travelling_environment(const EnvironmentView& environment);

/// The command line of a host's own tprun: `words` without --hosts, --hostfile and --ssh-command, so that it can never
/// start the others again.
std::vector<std::string> words_for_member(const std::vector<std::string>& words, Front front);

}  // namespace tensorplay::agent
