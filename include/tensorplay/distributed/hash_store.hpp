#pragma once

#include "tensorplay/distributed/store.hpp"

namespace tensorplay::distributed {

/// A store inside one process: ranks that are threads share one object.
///
/// Every change wakes whoever waits for it, whichever call made it. clone() gives a second handle on the same table
/// with a timeout of its own.
/// Thread rules: as for Store, but a thread that waits does not hold up the others.
class TP_API HashStore final : public Store {
 public:
  explicit HashStore(Timeout timeout = kDefaultTimeout);
  ~HashStore() override;

  using Store::wait;
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key) override;
  /// Throws DistStoreError when the stored value is not a number or the sum does not fit 64 bits.
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired) override;
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, Timeout timeout) override;
  bool delete_key(std::string_view key) override;
  std::int64_t num_keys() override;
  void append(std::string_view key, std::string_view value) override;
  std::vector<std::string> multi_get(const std::vector<std::string>& keys) override;
  void multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values) override;
  void queue_push(std::string_view key, std::string_view value) override;
  /// With `block` waits and takes in one step, so a value that one caller was woken for is never lost to another.
  std::string queue_pop(std::string_view key, bool block = true) override;
  std::int64_t queue_len(std::string_view key) override;
  std::vector<std::string> list_keys() override;
  bool has_extended_api() const override { return true; }
  std::shared_ptr<Store> clone() override;
  Timeout timeout() const override;
  void set_timeout(Timeout timeout) override;

 private:
  struct Table;
  HashStore(std::shared_ptr<Table> table, Timeout timeout);

  std::shared_ptr<Table> table_;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tensorplay::distributed
