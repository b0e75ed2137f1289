/// tpstore list and dump: everything in a store, and what it tells about a job.
#pragma once

#include "apps/tpstore/arguments.hpp"

#include <map>
#include <string>
#include <vector>

namespace tpstore {

/// A store's keys as on the wire, with their values.
using Content = std::map<std::string, std::string>;

/// Sentences about who has joined, read from the keys that torch and tprun leave: the worker count, and the addresses
/// by which Gloo's ranks find each other. Pure.
std::vector<std::string> describe_members(const Content& content);

int run_list(const Arguments& arguments);
int run_dump(const Arguments& arguments);

}  // namespace tpstore
