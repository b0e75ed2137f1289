#include "tensorplay/distributed/prefix_store.hpp"

#include "tensorplay/distributed/errors.hpp"

namespace tensorplay::distributed {

PrefixStore::PrefixStore(std::string prefix, std::shared_ptr<Store> store)
    : prefix_(std::move(prefix)), store_(std::move(store)) {
  if (store_ == nullptr) throw InvalidArgument("a prefix store needs a store to wrap; got none");
}

PrefixStore::~PrefixStore() = default;

std::string PrefixStore::joined(std::string_view key) const {
  std::string whole;
  whole.reserve(prefix_.size() + 1 + key.size());
  whole.append(prefix_).append(1, '/').append(key);
  return whole;
}

std::vector<std::string> PrefixStore::joined(const std::vector<std::string>& keys) const {
  std::vector<std::string> whole;
  whole.reserve(keys.size());
  for (const auto& key : keys) whole.push_back(joined(key));
  return whole;
}

void PrefixStore::set(std::string_view key, std::string_view value) {
  store_->set(joined(key), value);
}

std::string PrefixStore::get(std::string_view key) {
  return store_->get(joined(key));
}

std::int64_t PrefixStore::add(std::string_view key, std::int64_t delta) {
  return store_->add(joined(key), delta);
}

std::string PrefixStore::compare_set(std::string_view key, std::string_view expected, std::string_view desired) {
  return store_->compare_set(joined(key), expected, desired);
}

bool PrefixStore::check(const std::vector<std::string>& keys) {
  return store_->check(joined(keys));
}

void PrefixStore::wait(const std::vector<std::string>& keys, Timeout timeout) {
  store_->wait(joined(keys), timeout);
}

bool PrefixStore::delete_key(std::string_view key) {
  return store_->delete_key(joined(key));
}

std::int64_t PrefixStore::num_keys() {
  return store_->num_keys();
}

void PrefixStore::append(std::string_view key, std::string_view value) {
  store_->append(joined(key), value);
}

std::vector<std::string> PrefixStore::multi_get(const std::vector<std::string>& keys) {
  return store_->multi_get(joined(keys));
}

void PrefixStore::multi_set(const std::vector<std::string>& keys, const std::vector<std::string>& values) {
  store_->multi_set(joined(keys), values);
}

void PrefixStore::queue_push(std::string_view key, std::string_view value) {
  store_->queue_push(joined(key), value);
}

std::string PrefixStore::queue_pop(std::string_view key, bool block) {
  return store_->queue_pop(joined(key), block);
}

std::int64_t PrefixStore::queue_len(std::string_view key) {
  return store_->queue_len(joined(key));
}

std::vector<std::string> PrefixStore::list_keys() {
  // With the slash: prefix "a" is not the owner of "ab/x".
  const std::string start = joined("");
  std::vector<std::string> own;
  for (const auto& key : store_->list_keys()) {
    if (key.starts_with(start)) own.push_back(key.substr(start.size()));
  }
  return own;
}

bool PrefixStore::has_extended_api() const {
  return store_->has_extended_api();
}

std::shared_ptr<Store> PrefixStore::clone() {
  return std::make_shared<PrefixStore>(prefix_, store_->clone());
}

Store::Timeout PrefixStore::timeout() const {
  return store_->timeout();
}

void PrefixStore::set_timeout(Timeout timeout) {
  store_->set_timeout(timeout);
}

std::shared_ptr<Store> PrefixStore::underlying_non_prefix_store() const {
  std::shared_ptr<Store> store = store_;
  while (const auto* wrapped = dynamic_cast<const PrefixStore*>(store.get())) store = wrapped->store_;
  return store;
}

}  // namespace tensorplay::distributed
