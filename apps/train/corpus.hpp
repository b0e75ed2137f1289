#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace train {

extern const char* const kBuiltInText;

/// Samples of one batch: for each a window of characters and the one that follows it.
struct Batch {
  int size = 0;
  int context = 0;
  std::vector<int> inputs;   ///< size x context, character numbers.
  std::vector<int> targets;  ///< size
};

/// The text, with its characters (bytes) numbered in order of their value.
class Corpus {
 public:
  /// Throws std::runtime_error when the file cannot be read, or the text is not longer than the context.
  static Corpus from_file(const std::string& path, int context);
  static Corpus built_in(int context);

  int vocabulary_size() const { return vocabulary_size_; }
  std::uint64_t fingerprint() const { return fingerprint_; }  ///< Differs for another text.

  /// Samples first, first + 1, ... of a step. What a sample is follows from seed, step and its number alone: ranks that
  /// take turns in one numbering see together what a single process with the whole batch sees.
  Batch batch(std::uint64_t seed, int step, int first, int count) const;

 private:
  Corpus(const std::string& text, int context);

  std::vector<int> characters_;
  int context_;
  int vocabulary_size_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace train
