#include "runtime/backend/gloo/connect.hpp"

#include "runtime/backend/gloo/interface.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/host.hpp"
#include "runtime/group/roll_call.hpp"
#include "tensorplay/distributed/errors.hpp"

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tensorplay::distributed {
namespace {

namespace tcp = ::gloo::transport::tcp;

/// Gloo waits five times a pair's timeout for its connection.
constexpr int kGlooConnectFactor = 5;

/// The values of `stage/0` ... `stage/n-1`, each rank having set its own.
std::vector<std::string> exchange(const BackendOptions& options, const std::string& stage, const std::string& mine,
                                  Deadline deadline) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < options.size; ++rank) keys.push_back(stage + "/" + std::to_string(rank));
  Store& store = *options.store;
  store.set(keys[static_cast<std::size_t>(options.rank)], mine);
  try {
    store.wait(keys, store_timeout(deadline));
  } catch (const StoreTimeoutError&) {
    RollCall roll_call(options.store, options.rank, options.size);
    throw DistStoreError("gloo: waited for the addresses of " + std::to_string(options.size) + " ranks: those of " +
                         name_ranks(roll_call.missing(stage)) + " never came");
  }
  return store.multi_get(keys);
}

/// One rank's addresses, a listening socket for each peer, as it tells them to all: length and bytes of each in turn.
std::string pack_addresses(::gloo::transport::Context& context, int rank, int size) {
  std::string packed;
  for (int peer = 0; peer < size; ++peer) {
    std::vector<char> bytes;
    if (peer != rank) bytes = context.getPair(peer)->address().bytes();
    const auto length = static_cast<std::uint32_t>(bytes.size());
    packed.append(reinterpret_cast<const char*>(&length), sizeof(length));
    packed.append(bytes.data(), bytes.size());
  }
  return packed;
}

/// The address that `packed` holds for `rank`; DistBackendError when it holds none.
std::vector<char> unpack_address(std::string_view packed, int rank) {
  for (int i = 0; packed.size() >= sizeof(std::uint32_t); ++i) {
    std::uint32_t length = 0;
    std::memcpy(&length, packed.data(), sizeof(length));
    packed.remove_prefix(sizeof(length));
    if (length > packed.size()) break;
    if (i == rank) return {packed.begin(), packed.begin() + length};
    packed.remove_prefix(length);
  }
  throw DistBackendError("gloo: a peer's list of addresses is malformed");
}

bool share_one_host(const std::vector<std::string>& identities) {
  return std::all_of(identities.begin(), identities.end(),
                     [&](const std::string& identity) { return identity == identities.front(); });
}

std::shared_ptr<::gloo::transport::Device> make_device(bool is_single_host) {
  const auto wanted = base::env_value(base::env::kGlooSocketIfname).value_or("");
  const auto towards = is_single_host ? "" : address_towards(base::env_value(base::env::kMasterAddr).value_or(""));
  const auto address = choose_address(base::interface_addresses(), wanted, is_single_host, towards);
  return tcp::CreateDevice(tcp::attr(address.c_str()));
}

}  // namespace

ConnectedMesh connect_mesh(const BackendOptions& options, Deadline deadline) {
  // First who is where: the choice of the interface, which every address depends on, needs it.
  const auto introductions =
      exchange(options, "host", base::host_identity() + "\n" + base::short_host_name(), deadline);
  ConnectedMesh mesh;
  std::vector<std::string> identities;
  for (const auto& introduction : introductions) {
    const auto newline = introduction.find('\n');
    identities.push_back(introduction.substr(0, newline));
    mesh.hosts.push_back(newline == std::string::npos ? "?" : introduction.substr(newline + 1));
  }

  mesh.addresses.resize(static_cast<std::size_t>(options.size));

  int connecting_to = -1;
  try {
    auto device = make_device(share_one_host(identities));
    mesh.context = device->createContext(options.rank, options.size);
    mesh.context->setTimeout(std::max(store_timeout(deadline) / kGlooConnectFactor, Store::Timeout(1)));
    for (int peer = 0; peer < options.size; ++peer) {
      if (peer != options.rank) mesh.context->createPair(peer);
    }
    const auto addresses =
        exchange(options, "address", pack_addresses(*mesh.context, options.rank, options.size), deadline);
    for (int peer = 0; peer < options.size; ++peer) {
      if (peer == options.rank) continue;
      connecting_to = peer;
      if (deadline.has_passed()) throw DistBackendError("the time is over");
      const auto address = unpack_address(addresses[static_cast<std::size_t>(peer)], options.rank);
      mesh.addresses[static_cast<std::size_t>(peer)] = tcp::Address(address).str();
      mesh.context->getPair(peer)->connect(address);
    }
  } catch (const DistStoreError&) {
    throw;
  } catch (const std::exception& error) {
    if (connecting_to < 0) throw DistBackendError(std::string("gloo: no socket to be reached by: ") + error.what());
    throw DistBackendError("gloo: rank " + std::to_string(options.rank) + " could not connect to rank " +
                           std::to_string(connecting_to) + " on " +
                           mesh.hosts[static_cast<std::size_t>(connecting_to)] + ": " + error.what());
  }
  return mesh;
}

}  // namespace tensorplay::distributed
