/// A call, written down for another process of the same program.
///
/// Functions go by the module they are in and their place in it, so that address randomisation does not matter; the
/// program is checked to be the same file.
/// Thread rules: pure but for the files they are given.
#pragma once

#include "tensorplay/multiprocessing.hpp"

#include <string>
#include <string_view>

namespace tensorplay::multiprocessing {

struct WrittenCall {
  int parent = 0;  ///< Who waits for it; 0: nobody, the caller is found through its environment.
  int index = 0;
  bool is_daemon = false;
  Call call;
};

/// InvalidArgument when a function lies in no module that a new process has from its start.
std::string write_call(const WrittenCall& call);

/// DistError when the text was written by another program, or a module is not there.
WrittenCall read_call(std::string_view text);

/// An anonymous file with this content, close-on-exec. Throws std::system_error.
int make_memory_file(const char* name, std::string_view content);

/// All of it. Throws std::system_error.
std::string read_whole(int fd);

}  // namespace tensorplay::multiprocessing
