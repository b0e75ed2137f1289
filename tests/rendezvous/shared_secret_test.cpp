#include "rendezvous/shared_secret.hpp"

#include "runtime/store/wire_codec.hpp"
#include "tensorplay/distributed/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

#include <fstream>

#include <sys/stat.h>

using namespace tensorplay;
using namespace tensorplay::rendezvous;

namespace {

struct SecretFile {
  testing::TemporaryDirectory folder;
  std::string path = folder.file("secret");

  void write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    REQUIRE(::chmod(path.c_str(), mode) == 0);
  }
  std::string complaint() {
    try {
      return "read: " + read_secret_file(path);
    } catch (const distributed::InvalidArgument& error) {
      return std::string(error.what()).substr(path.size());
    }
  }
};

std::string in_hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace

TEST_CASE("a secret file is its owner's alone, a file, and long enough; line ends behind it do not count") {
  SecretFile file;
  CHECK(file.complaint() == ": cannot be read: No such file or directory");
  file.write("0123456789abcdef\r\n\n");
  CHECK(file.complaint() == "read: 0123456789abcdef");
  file.write("0123456789abcde\n");
  CHECK(file.complaint() == ": a secret of 15 bytes is too short; give 16 or more, such as: openssl rand -hex 32");
  file.write(std::string(5000, 'x'));
  CHECK(file.complaint() == ": a secret may have 4096 bytes at most");
  for (const mode_t mode : {0640, 0604, 0620, 0601}) {
    file.write("0123456789abcdef", mode);
    CHECK(file.complaint() == ": others than its owner may use it; run: chmod 600 " + file.path);
  }
  ::unlink(file.path.c_str());
  REQUIRE(::mkfifo(file.path.c_str(), 0600) == 0);
  CHECK(file.complaint() == ": is not a file; give one that holds the secret");
}

TEST_CASE("proofs are HMAC-SHA-256 as the protocol's page says, and differ with everything they are about") {
  REQUIRE(make_authenticator("") == nullptr);
  const auto secret = make_authenticator("0123456789abcdef");
  const std::string nonce = secret->make_nonce();
  REQUIRE(nonce.size() == store::kNonceBytes);
  REQUIRE(nonce != secret->make_nonce());
  const store::HelloTranscript hello{"job7", "ada", "n1", std::string(32, 's'), std::string(32, 'c')};
  // Computed with Python's hmac module from the page's words.
  REQUIRE(in_hex(secret->client_proof(hello)) == "055acc5e196c5bc90c49f126d0b56f52d44a7896196949cc5935c3ff207c63c6");
  REQUIRE(in_hex(secret->server_proof(hello)) == "135c3e798f55eb43e110a1e0aa78033a46d2a7535c9e256b89010a56ae9cdddb");
  for (auto member : {&store::HelloTranscript::run_id, &store::HelloTranscript::user, &store::HelloTranscript::agent,
                      &store::HelloTranscript::server_nonce, &store::HelloTranscript::client_nonce}) {
    auto other = hello;
    other.*member += "x";
    REQUIRE(secret->client_proof(other) != secret->client_proof(hello));
  }
  auto shifted = hello;
  shifted.run_id = "job7a";
  shifted.user = "da";
  REQUIRE(secret->client_proof(shifted) != secret->client_proof(hello));
  REQUIRE(secret->is_equal("same", "same"));
  REQUIRE_FALSE(secret->is_equal("same", "sane"));
  REQUIRE_FALSE(secret->is_equal("same", "same "));
}
