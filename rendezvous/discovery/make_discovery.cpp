#include "rendezvous/discovery/discovery.hpp"
#include "rendezvous/discovery/endpoint_search.hpp"
#include "rendezvous/discovery/etcd_search.hpp"
#include "rendezvous/discovery/file_search.hpp"
#include "tensorplay/distributed/errors.hpp"

namespace tensorplay::rendezvous {

std::unique_ptr<Discovery> make_discovery(const std::string& backend, DiscoveryOptions options) {
  if (backend == "static") return std::make_unique<EndpointSearch>(std::move(options), choose_static);
  if (backend == "c10d") return std::make_unique<EndpointSearch>(std::move(options), choose_endpoint);
  if (backend == "file") return std::make_unique<FileSearch>(std::move(options));
  if (backend == "etcd-v3") return std::make_unique<EtcdSearch>(std::move(options));
  throw distributed::InvalidArgument("there is no rendezvous called '" + backend + "'");
}

std::unique_ptr<Discovery> make_rival_search(DiscoveryOptions options) {
  return std::make_unique<EndpointSearch>(std::move(options), choose_rival);
}

}  // namespace tensorplay::rendezvous
