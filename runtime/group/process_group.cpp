#include "tensorplay/distributed/process_group.hpp"

#include "runtime/group/close_hook.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/prefix_store.hpp"

#include <algorithm>
#include <utility>

namespace tensorplay::distributed {

ProcessGroup::ProcessGroup(Options options) : options_(std::move(options)) {}

ProcessGroup::ProcessGroup(const BackendOptions& options)
    : options_{.name = options.group_name,
               .rank = options.rank,
               .global_ranks = options.global_ranks,
               .timeout = options.timeout,
               .store = options.group_store,
               .desc = options.group_desc,
               .bound_device = options.bound_device} {}

ProcessGroup::~ProcessGroup() {
  shutdown();
}

int ProcessGroup::group_rank_of(int global_rank) const {
  const auto& ranks = options_.global_ranks;
  const auto found = std::find(ranks.begin(), ranks.end(), global_rank);
  if (found == ranks.end()) {
    throw InvalidArgument("global rank " + std::to_string(global_rank) + " is no member of group " + options_.name +
                          ", which has " + std::to_string(size()) + " ranks");
  }
  return static_cast<int>(found - ranks.begin());
}

int ProcessGroup::global_rank_of(int group_rank) const {
  if (group_rank < 0 || group_rank >= size()) {
    throw InvalidArgument("group rank " + std::to_string(group_rank) + " of group " + options_.name + ", which has " +
                          std::to_string(size()) + " ranks");
  }
  return options_.global_ranks[static_cast<std::size_t>(group_rank)];
}

Backend& ProcessGroup::backend_for(DeviceType device) const {
  if (const auto found = backends_.find(device); found != backends_.end()) return *found->second;
  throw InvalidArgument(std::string("group ")
                            .append(options_.name)
                            .append(" has no backend for tensors on ")
                            .append(to_string(device))
                            .append("; it has ")
                            .append(backend_config()));
}

void ProcessGroup::set_backend(DeviceType device, std::shared_ptr<Backend> backend) {
  backends_[device] = std::move(backend);
}

std::string ProcessGroup::backend_config() const {
  std::string text;
  for (const auto& [device, backend] : backends_) {
    text.append(text.empty() ? "" : ",").append(to_string(device)).append(":").append(backend->name());
  }
  return text;
}

std::shared_ptr<Store> ProcessGroup::store() const {
  if (!options_.store) throw InvalidArgument("group " + options_.name + " has no store");
  return std::make_shared<PrefixStore>("user", options_.store);
}

void ProcessGroup::set_timeout(std::chrono::milliseconds timeout) {
  if (timeout.count() <= 0) throw InvalidArgument("set_timeout: the timeout has to be positive");
  options_.timeout = timeout;
  for (const auto& [device, backend] : backends_) backend->set_timeout(timeout);
}

void ProcessGroup::shutdown() {
  if (tell_agent_if_unwinding()) abort("an exception unwinds through the group");
  for (const auto& [device, backend] : backends_) backend->shutdown();
}

void ProcessGroup::abort(const std::string& why) {
  for (const auto& [device, backend] : backends_) backend->abort(why);
}

}  // namespace tensorplay::distributed
