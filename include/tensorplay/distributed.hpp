/// The communication runtime, whole: include this, link TensorPlayDistributed::tensorplay_distributed.
#pragma once

#include "tensorplay/distributed/backend.hpp"
#include "tensorplay/distributed/checkpoint.hpp"
#include "tensorplay/distributed/collectives.hpp"
#include "tensorplay/distributed/debug_level.hpp"
#include "tensorplay/distributed/device_mesh.hpp"
#include "tensorplay/distributed/elastic.hpp"
#include "tensorplay/distributed/elastic_sampler.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tensorplay/distributed/fake_backend.hpp"
#include "tensorplay/distributed/file_store.hpp"
#include "tensorplay/distributed/groups.hpp"
#include "tensorplay/distributed/hash_store.hpp"
#include "tensorplay/distributed/init.hpp"
#include "tensorplay/distributed/op_type.hpp"
#include "tensorplay/distributed/point_to_point.hpp"
#include "tensorplay/distributed/prefix_store.hpp"
#include "tensorplay/distributed/process_group.hpp"
#include "tensorplay/distributed/reduce_op.hpp"
#include "tensorplay/distributed/store.hpp"
#include "tensorplay/distributed/tcp_store.hpp"
#include "tensorplay/distributed/tensor.hpp"
#include "tensorplay/distributed/work.hpp"
#include "tensorplay/distributed/world.hpp"

// Needs a library of its own, so it is left out where that is not installed.
#if __has_include(<nlohmann/json.hpp>)
#include "tensorplay/distributed/objects.hpp"
#endif
