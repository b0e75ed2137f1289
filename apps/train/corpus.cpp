#include "apps/train/corpus.hpp"

#include "apps/train/hashing.hpp"

#include <array>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace train {

Corpus Corpus::from_file(const std::string& path, int context) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) throw std::runtime_error(path + ": cannot be read");
  return Corpus(text.str(), context);
}

Corpus Corpus::built_in(int context) {
  return Corpus(kBuiltInText, context);
}

Corpus::Corpus(const std::string& text, int context) : context_(context) {
  if (text.size() <= static_cast<std::size_t>(context)) {
    throw std::runtime_error("the text has " + std::to_string(text.size()) +
                             " characters, no more than --context=" + std::to_string(context));
  }
  std::array<int, 256> numbers{};
  for (const unsigned char c : text) numbers[c] = 1;
  for (int& number : numbers) number = number == 0 ? -1 : vocabulary_size_++;
  characters_.reserve(text.size());
  for (const unsigned char c : text) characters_.push_back(numbers[c]);
  fingerprint_ = hash_bytes(text.data(), text.size());
}

Batch Corpus::batch(std::uint64_t seed, int step, int first, int count) const {
  Batch batch{count, context_, {}, {}};
  const std::uint64_t places = characters_.size() - static_cast<std::size_t>(context_);
  for (int sample = first; sample < first + count; ++sample) {
    const std::uint64_t random =
        mix(mix(mix(seed) ^ static_cast<std::uint64_t>(step)) ^ static_cast<std::uint64_t>(sample));
    const auto begin = characters_.begin() + static_cast<std::ptrdiff_t>(random % places);
    batch.inputs.insert(batch.inputs.end(), begin, begin + context_);
    batch.targets.push_back(*(begin + context_));
  }
  return batch;
}

}  // namespace train
