/// How the other hosts reach the first ones of --hosts: what ssh takes for a host may be a name of its configuration
/// only.
#pragma once

#include "agent/hosts/host_list.hpp"

#include <string>
#include <vector>

namespace tensorplay::agent {

/// Whether `name` means this host: localhost, or its own name. A user before '@' makes it another matter: ssh is used.
bool is_this_host(const std::string& name);

/// The value of "hostname" in what `ssh -G` prints; empty when there is none. A core.
std::string host_name_in_ssh_configuration(const std::string& printed);

/// For the first three hosts: the name where the resolver knows it, else what ssh's configuration has for it; an
/// address of this host instead of one that means it from here only. Asks the resolver and, if need be, ssh. Blocks.
std::vector<std::string> find_meeting_names(const std::vector<HostEntry>& hosts, const std::string& ssh);

}  // namespace tensorplay::agent
