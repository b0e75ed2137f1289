/// How agent and server prove to each other that they know the job's secret: an interface, so that the store needs no
/// cryptography of its own. The proof is over both sides' nonces and names (docs/store-protocol.md).
#pragma once

#include <string>
#include <string_view>

namespace tensorplay::store {

/// What both sides know of one hello, and sign.
struct HelloTranscript {
  std::string run_id;
  std::string user;
  std::string agent;
  std::string server_nonce;  ///< 32 random bytes of the server's.
  std::string client_nonce;  ///< 32 random bytes of the client's.
};

/// Thread rules: const calls from any thread.
class Authenticator {
 public:
  virtual ~Authenticator() = default;

  /// 32 bytes from the kernel.
  virtual std::string make_nonce() const = 0;

  /// What an agent sends to show that it knows the secret.
  virtual std::string client_proof(const HelloTranscript& transcript) const = 0;

  /// What a server answers to show the same; differs from the client's.
  virtual std::string server_proof(const HelloTranscript& transcript) const = 0;

  /// Compares in constant time.
  virtual bool is_equal(std::string_view a, std::string_view b) const = 0;
};

}  // namespace tensorplay::store
