/// The part of the rendezvous that opens files and sockets.
#include "runtime/group/rendezvous.hpp"
#include "runtime/group/roll_call.hpp"
#include "tensorplay/distributed/file_store.hpp"
#include "tensorplay/distributed/tcp_store.hpp"

#include <utility>

namespace tensorplay::distributed {

std::shared_ptr<Store> open_store(const RendezvousPlan& plan, Deadline deadline) {
  if (plan.kind == RendezvousPlan::Kind::kFile) {
    FileStoreOptions options;
    options.path = plan.path;
    options.world_size = plan.world_size;
    options.timeout = store_timeout(deadline);
    return std::make_shared<FileStore>(std::move(options));
  }
  TCPStoreOptions options;
  options.host = plan.host;
  options.port = plan.port;
  options.is_master = plan.hosts_store;
  options.timeout = store_timeout(deadline);
  options.wait_for_workers = false;  // The roll call of init_process_group waits, and names who is missing.
  options.multi_tenant = true;
  return std::make_shared<TCPStore>(std::move(options));
}

}  // namespace tensorplay::distributed
