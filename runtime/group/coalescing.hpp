#pragma once

#include "tensorplay/distributed/process_group.hpp"
#include "tensorplay/distributed/work.hpp"

#include <memory>
#include <vector>

namespace tensorplay::distributed {

/// A block in this thread whose collectives on one group are started together. Ends with its scope, however that is
/// left, so an exception cannot leave the group in it. Thread rules: one thread; blocks of several groups may be
/// nested.
class Coalescing {
 public:
  explicit Coalescing(const ProcessGroup& group);  ///< InvalidArgument inside a block of the same group.
  ~Coalescing();
  Coalescing(const Coalescing&) = delete;
  Coalescing& operator=(const Coalescing&) = delete;

  /// The block of `group` that this thread is in; null when it is in none.
  static Coalescing* of(const ProcessGroup& group) noexcept;

  void add(std::shared_ptr<Work> work) { works_.push_back(std::move(work)); }
  std::vector<std::shared_ptr<Work>> take() { return std::move(works_); }

 private:
  const ProcessGroup& group_;
  Coalescing* outer_;
  std::vector<std::shared_ptr<Work>> works_;
};

}  // namespace tensorplay::distributed
