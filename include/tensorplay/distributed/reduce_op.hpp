#pragma once

#include "tensorplay/distributed/export.hpp"

#include <cstdint>
#include <string_view>

namespace tensorplay::distributed {

/// How the contributions of the ranks become one value.
///
/// An object rather than a plain enum, because PREMUL_SUM carries a factor: `ReduceOp::SUM`, or
/// `ReduceOp::premul_sum(0.25)`, which multiplies each contribution before it is added.
/// Thread rules: a value. Source of names and order: c10d's ReduceOp.
class ReduceOp {
 public:
  enum Kind : std::uint8_t { SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM };

  constexpr ReduceOp(Kind kind = SUM) noexcept : kind_(kind) {}  // NOLINT(google-explicit-constructor)
  static constexpr ReduceOp premul_sum(double factor) noexcept {
    ReduceOp op(PREMUL_SUM);
    op.factor_ = factor;
    return op;
  }

  constexpr Kind kind() const noexcept { return kind_; }
  constexpr double factor() const noexcept { return factor_; }
  constexpr bool operator==(const ReduceOp&) const noexcept = default;

 private:
  Kind kind_;
  double factor_ = 1.0;
};

/// The older spelling: reduce_op::SUM and so on.
struct reduce_op {
  [[deprecated("use ReduceOp::SUM")]] static constexpr ReduceOp::Kind SUM = ReduceOp::SUM;
  [[deprecated("use ReduceOp::PRODUCT")]] static constexpr ReduceOp::Kind PRODUCT = ReduceOp::PRODUCT;
  [[deprecated("use ReduceOp::MIN")]] static constexpr ReduceOp::Kind MIN = ReduceOp::MIN;
  [[deprecated("use ReduceOp::MAX")]] static constexpr ReduceOp::Kind MAX = ReduceOp::MAX;
};

/// "SUM", "AVG", ...
TP_API std::string_view to_string(const ReduceOp& op) noexcept;

}  // namespace tensorplay::distributed
