#include "rendezvous/shared_secret.hpp"

#include "runtime/base/fd.hpp"
#include "runtime/store/wire_codec.hpp"
#include "tensorplay/distributed/errors.hpp"

extern "C" {  // Not all of these headers say so themselves.
#include <mbedtls/constant_time.h>
#include <mbedtls/md.h>
#include <mbedtls/platform_util.h>
}

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <sys/random.h>
#include <sys/stat.h>

namespace tensorplay::rendezvous {
namespace {

using distributed::InvalidArgument;
using store::HelloTranscript;

constexpr std::size_t kMaxSecretBytes = 4096;
constexpr std::size_t kProofBytes = 32;

class SharedSecret final : public store::Authenticator {
 public:
  explicit SharedSecret(std::string secret) : secret_(std::move(secret)) {}
  ~SharedSecret() override { mbedtls_platform_zeroize(secret_.data(), secret_.size()); }
  SharedSecret(const SharedSecret&) = delete;
  SharedSecret& operator=(const SharedSecret&) = delete;

  std::string make_nonce() const override {
    std::string nonce(store::kNonceBytes, '\0');
    // Up to 256 bytes come whole once the kernel has seeded itself.
    if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
      throw distributed::DistError(std::string("no random bytes from the kernel: ") + std::strerror(errno));
    }
    return nonce;
  }

  std::string client_proof(const HelloTranscript& transcript) const override {
    return sign("tprun agent proof 1", transcript);
  }

  std::string server_proof(const HelloTranscript& transcript) const override {
    return sign("tprun store proof 1", transcript);
  }

  bool is_equal(std::string_view a, std::string_view b) const override {
    return a.size() == b.size() && mbedtls_ct_memcmp(a.data(), b.data(), a.size()) == 0;
  }

 private:
  /// Each part with its length, so that no two transcripts give the same bytes.
  std::string sign(std::string_view purpose, const HelloTranscript& transcript) const {
    std::string text;
    for (const std::string_view part : {purpose, std::string_view(transcript.run_id), std::string_view(transcript.user),
                                        std::string_view(transcript.agent), std::string_view(transcript.server_nonce),
                                        std::string_view(transcript.client_nonce)}) {
      store::put_bytes(text, part);
    }
    std::string proof(kProofBytes, '\0');
    const auto* sha256 = mbedtls_md_info_from_type(MBEDTLS_MD_SHA256);
    const auto bytes = [](const std::string& s) { return reinterpret_cast<const unsigned char*>(s.data()); };
    const int error = mbedtls_md_hmac(sha256, bytes(secret_), secret_.size(), bytes(text), text.size(),
                                      reinterpret_cast<unsigned char*>(proof.data()));
    if (error != 0) throw distributed::DistError("HMAC-SHA-256 failed: " + std::to_string(error));
    return proof;
  }

  std::string secret_;
};

}  // namespace

std::shared_ptr<const store::Authenticator> make_authenticator(std::string secret) {
  if (secret.empty()) return nullptr;
  return std::make_shared<SharedSecret>(std::move(secret));
}

std::string read_secret_file(const std::string& path) {
  const auto fail = [&path](const std::string& what) -> InvalidArgument { return InvalidArgument(path + ": " + what); };
  // A FIFO or device must neither hold us up nor be read.
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) throw fail(std::string("cannot be read: ") + std::strerror(errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) throw fail(std::string("cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) throw fail("is not a file; give one that holds the secret");
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw fail("others than its owner may use it; run: chmod 600 " + path);
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) throw fail("belongs to another user; give a file of your own");
  std::array<char, kMaxSecretBytes + 3> buffer{};
  std::size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t got = ::read(fd.get(), buffer.data() + size, buffer.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw fail(std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  std::string secret(buffer.data(), size);
  mbedtls_platform_zeroize(buffer.data(), buffer.size());
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  return check_secret(path, std::move(secret));
}

std::string check_secret(const std::string& name, std::string secret) {
  if (secret.size() < kMinSecretBytes) {
    throw InvalidArgument(name + ": a secret of " + std::to_string(secret.size()) + " bytes is too short; give " +
                          std::to_string(kMinSecretBytes) + " or more, such as: openssl rand -hex 32");
  }
  if (secret.size() > kMaxSecretBytes) {
    throw InvalidArgument(name + ": a secret may have " + std::to_string(kMaxSecretBytes) + " bytes at most");
  }
  return secret;
}

}  // namespace tensorplay::rendezvous
