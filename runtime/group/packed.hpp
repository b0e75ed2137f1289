#pragma once

#include "tensorplay/distributed/tensor.hpp"

#include <cstddef>

namespace tensorplay::distributed {

/// The tensor itself when its elements lie one after the other, else a packed copy that unpack() brings back.
class Packed {
 public:
  explicit Packed(const Tensor& tensor) : tensor_(tensor), flat_(tensor.contiguous()) {}

  void unpack() {
    if (flat_.data() != tensor_.data()) tensor_.copy_(flat_);
  }
  void* data() const { return flat_.data(); }
  std::size_t bytes() const { return flat_.nbytes(); }
  std::size_t count() const { return static_cast<std::size_t>(flat_.numel()); }
  DType dtype() const { return flat_.dtype(); }

 private:
  Tensor tensor_;
  Tensor flat_;
};

}  // namespace tensorplay::distributed
