#pragma once

#include "tensorplay/distributed/store.hpp"

namespace tensorplay::distributed {

/// A name space inside another store: key `k` becomes `prefix/k` there.
///
/// Prefixes nest, the outermost store's prefix standing last: PrefixStore("b", PrefixStore("a", s)) writes `a/b/k`.
/// An empty prefix still adds its slash. The timeout is the wrapped store's own, shared with all who use that store.
/// Barriers are made of add and wait, never of the server's barrier request, so that they work on every server and
/// meet those of other implementations.
/// Ownership: shares the wrapped store. Thread rules: the wrapped store's.
class TP_API PrefixStore final : public Store {
 public:
  /// Throws InvalidArgument when `store` is null.
  PrefixStore(std::string prefix, std::shared_ptr<Store> store);
  ~PrefixStore() override;

  using Store::wait;
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key) override;
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired) override;
  bool check(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, Timeout timeout) override;
  bool delete_key(std::string_view key) override;
  /// Of the whole wrapped store: a prefix does not count by itself.
  std::int64_t num_keys() override;
  void append(std::string_view key, std::string_view value) override;
  std::vector<std::string> multi_get(const std::vector<std::string>& keys) override;
  void multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values) override;
  void queue_push(std::string_view key, std::string_view value) override;
  std::string queue_pop(std::string_view key, bool block = true) override;
  std::int64_t queue_len(std::string_view key) override;
  /// The keys that start with `prefix/`, without it.
  std::vector<std::string> list_keys() override;
  bool has_extended_api() const override;
  std::shared_ptr<Store> clone() override;
  Timeout timeout() const override;
  void set_timeout(Timeout timeout) override;

  const std::string& prefix() const { return prefix_; }
  const std::shared_ptr<Store>& underlying_store() const { return store_; }
  /// The store below all prefixes.
  std::shared_ptr<Store> underlying_non_prefix_store() const;

 private:
  std::string joined(std::string_view key) const;
  std::vector<std::string> joined(const std::vector<std::string>& keys) const;

  std::string prefix_;
  std::shared_ptr<Store> store_;
};

}  // namespace tensorplay::distributed
