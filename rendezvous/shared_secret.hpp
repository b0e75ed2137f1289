/// The job's secret, by which agents and server know each other: HMAC-SHA-256 over one hello (docs/store-protocol.md).
#pragma once

#include "runtime/store/authenticator.hpp"

#include <memory>
#include <string>

namespace tensorplay::rendezvous {

/// A secret shorter than this can be guessed by trying.
inline constexpr std::size_t kMinSecretBytes = 16;

/// What `secret` lets one prove; null for an empty one, which means that there is none.
std::shared_ptr<const store::Authenticator> make_authenticator(std::string secret);

/// The secret in a file, without the line ends behind it. Throws InvalidArgument saying what is wrong: not there, not a
/// regular file, readable by others than its owner, owned by another user (root excepted), too short or too long.
std::string read_secret_file(const std::string& path);

/// The same rules for a secret from elsewhere; `name` begins the message of InvalidArgument.
std::string check_secret(const std::string& name, std::string secret);

}  // namespace tensorplay::rendezvous
