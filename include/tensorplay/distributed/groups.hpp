/// Groups of some of the ranks: making, splitting, shrinking and asking about them.
///
/// A group is made by all ranks of the default group in the same order, members or not, unless a function says
/// otherwise; each returns the group, or GroupMember::NON_GROUP_MEMBER to a rank that is not in it. It returns on no
/// member before every member has joined; the error at the end of the timeout names those who did not. A timeout or
/// backend that is not given is the default group's. Ranks are global ranks.
/// Thread rules: those of the World. Errors: InvalidArgument for lists that do not fit, before anybody waits.
/// Source of the semantics: c10d.
#pragma once

#include "tensorplay/distributed/export.hpp"
#include "tensorplay/distributed/init.hpp"
#include "tensorplay/distributed/process_group.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tensorplay::distributed {

/// Handles that can be given wherever a group is asked for.
struct TP_API GroupMember {
  static const Group WORLD;             ///< The default group of the current World, whichever that is.
  static const Group NON_GROUP_MEMBER;  ///< A group that the caller is not in: its calls warn once and do nothing.
};

struct NewGroupOptions {
  std::vector<int> ranks = {};  ///< Empty: all.
  std::optional<std::chrono::milliseconds> timeout = {};
  std::string backend = {};
  std::shared_ptr<const PGOptions> pg_options = {};
  bool use_local_synchronization = false;  ///< Only the members call; other groups are not disturbed.
  std::string group_desc = {};
  std::optional<Device> device_id = {};
  bool sort_ranks = true;  ///< False: the group's ranks follow the list.
};

TP_API Group new_group(const NewGroupOptions& options = {});

struct SubgroupsOptions {
  int group_size = 0;  ///< Ranks of each subgroup. 0: LOCAL_WORLD_SIZE, which tprun sets.
  Group group = {};    ///< Divided; the default group.
  std::optional<std::chrono::milliseconds> timeout = {};
  std::string backend = {};
  std::shared_ptr<const PGOptions> pg_options = {};
  std::string group_desc = {};
};

/// Consecutive ranks in groups of one size: the caller's, and all (those of others as NON_GROUP_MEMBER).
TP_API std::pair<Group, std::vector<Group>> new_subgroups(const SubgroupsOptions& options = {});

struct EnumeratedSubgroupsOptions {
  std::vector<std::vector<int>> ranks_per_subgroup_list = {};
  std::optional<std::chrono::milliseconds> timeout = {};
  std::string backend = {};
  std::shared_ptr<const PGOptions> pg_options = {};
  std::string group_desc = {};
};

/// The lists may not overlap, which is told before a group is made; a rank in none of them gets NON_GROUP_MEMBER.
TP_API std::pair<Group, std::vector<Group>> new_subgroups_by_enumeration(const EnumeratedSubgroupsOptions& options);

struct SplitGroupOptions {
  Group parent_pg = {};
  std::vector<std::vector<int>> split_ranks = {};  ///< Ranks of the parent.
  std::optional<std::chrono::milliseconds> timeout = {};
  std::shared_ptr<const PGOptions> pg_options = {};
  std::string group_desc = {};
  std::string backend = {};  ///< A part of the parent's, such as "cpu:gloo"; empty: all of it.
};

/// Called by the members of the parent only. The lists may not overlap.
TP_API Group split_group(const SplitGroupOptions& options);

inline constexpr int SHRINK_DEFAULT = 0;
inline constexpr int SHRINK_ABORT = 1;  ///< The old group's operations end at once.

struct ShrinkGroupOptions {
  std::vector<int> ranks_to_exclude = {};  ///< Ranks of the group.
  Group group = {};
  int shrink_flags = SHRINK_DEFAULT;
  std::shared_ptr<const PGOptions> pg_options = {};
};

/// A group of those that are left, who alone call; the old one is destroyed. Shrinking the default group destroys every
/// group and makes the result the default one, with ranks counted anew.
TP_API Group shrink_group(const ShrinkGroupOptions& options);

/// Every group of the current World that this rank is in, the default one first.
TP_API std::vector<Group> all_groups();
TP_API int get_pg_count();

/// The group's rank of a global rank and the reverse.
TP_API int get_group_rank(const Group& group, int global_rank);
TP_API int get_global_rank(const Group& group, int group_rank);

/// The global rank of each member.
TP_API std::vector<int> get_process_group_ranks(const Group& group = {});

/// The object that carries out the group's operations on that device; needed where there are several.
TP_API Backend& get_backend_impl(const Group& group = {}, std::optional<Device> device = {});

/// "gloo" for the CPU, "nccl" for cuda, "xccl" for xpu; InvalidArgument where the default one is not in this build.
TP_API std::string get_default_backend_for_device(const Device& device);

/// The limit of later operations that are given none.
TP_API void set_timeout(std::chrono::milliseconds timeout, const Group& group = {});

}  // namespace tensorplay::distributed
