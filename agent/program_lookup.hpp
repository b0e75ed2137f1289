/// Decides what a worker executes: the program itself, or Python with the program as its script. A core: it asks the
/// Machine about files and touches nothing.
#pragma once

#include "agent/environment_view.hpp"
#include "agent/launch_plan.hpp"
#include "agent/machine.hpp"

#include <string>
#include <vector>

namespace tensorplay::agent {

struct ProgramRequest {
  std::vector<std::string> words;  ///< The program and its arguments, as written; at least one.
  bool is_module = false;          ///< -m
  bool no_python = false;          ///< --no-python
  bool run_path = false;           ///< --run-path: a Python script, whatever else is said.
};

/// A program that cannot be started still gives a plan: its startup_errno says why (ENOENT, EACCES).
ProgramPlan find_program(const ProgramRequest& request, const EnvironmentView& environment, const Machine& machine);

}  // namespace tensorplay::agent
