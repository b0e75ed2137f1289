/// Files of the repository that a test reads: documents that must agree with the code.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace tensorplay::tests {

/// Its whole text; throws when it is not there.
inline std::string source_file(const std::string& path) {
  std::ifstream file(std::string(TP_SOURCE_DIR) + "/" + path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Whether generated documents are to be written anew instead of compared: TP_REWRITE=1.
inline bool rewrites() {
  const char* value = std::getenv("TP_REWRITE");
  return value != nullptr && std::string(value) == "1";
}

inline void write_source_file(const std::string& path, const std::string& text) {
  std::ofstream file(std::string(TP_SOURCE_DIR) + "/" + path, std::ios::binary | std::ios::trunc);
  if (!(file << text)) throw std::runtime_error("cannot write " + path);
}

}  // namespace tensorplay::tests
