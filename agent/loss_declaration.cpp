#include "agent/loss_declaration.hpp"

#include "runtime/base/socket.hpp"
#include "runtime/store/authenticator.hpp"
#include "runtime/store/wire_codec.hpp"
#include "tensorplay/distributed/errors.hpp"

namespace tensorplay::agent {
namespace {

using base::Deadline;

std::string receive(int fd, std::size_t size, Deadline deadline) {
  if (size > store::kMaxPayloadBytes) throw distributed::DistNetworkError("an answer that makes no sense");
  std::string bytes(size, '\0');
  base::recv_exact(fd, bytes.data(), size, deadline);
  return bytes;
}

}  // namespace

void declare_lost(const AgentLease& lease, const store::Authenticator* authenticator, Deadline deadline) {
  const auto fd = base::connect_to(lease.host, lease.port, deadline);
  std::string bytes;
  store::encode_validate(bytes);
  store::encode_check(bytes, {std::string(store::kExtensionProbeKey)});
  store::encode_hello(
      bytes, {store::kExtensionVersion, store::Role::kAgent, lease.run_id, lease.user, lease.agent, lease.epoch});
  base::send_all(fd.get(), bytes, deadline);
  const auto receive_text = [&] {
    return receive(fd.get(), store::get_u64(receive(fd.get(), 8, deadline).data()), deadline);
  };
  const auto answers = receive(fd.get(), 2 + 4, deadline);  // the probe's answer, status, version
  receive_text();
  receive_text();
  receive(fd.get(), 8, deadline);
  if (static_cast<store::HelloStatus>(answers[1]) == store::HelloStatus::kProve && authenticator != nullptr) {
    const store::HelloTranscript transcript{lease.run_id, lease.user, lease.agent, receive_text(),
                                            authenticator->make_nonce()};
    bytes.clear();
    store::encode_prove(bytes, transcript.client_nonce, authenticator->client_proof(transcript));
    base::send_all(fd.get(), bytes, deadline);
    receive(fd.get(), 1, deadline);
    receive_text();
  }
  bytes.clear();
  store::encode_declare_lost(bytes, lease.agent, lease.token);
  base::send_all(fd.get(), bytes, deadline);
  receive(fd.get(), 1, deadline);  // whether it had not known
}

}  // namespace tensorplay::agent
