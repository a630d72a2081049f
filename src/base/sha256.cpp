#include <arenite/error.hpp>

#include "src/base/sha256.hpp"

#include <openssl/evp.h>

#include <array>

namespace arenite {

struct Sha256::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Impl() { EVP_MD_CTX_free(context); }
};

namespace {
void check(int result) {
  if (result != 1)
    fail({.found = "OpenSSL refused SHA-256", .expected = "a libcrypto that has it"});
}
}  // namespace

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  check(EVP_DigestInit_ex(impl_->context, EVP_sha256(), nullptr));
}
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size()));
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  check(EVP_DigestFinal_ex(impl_->context, digest.data(), &length));
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    text += digits[digest[i] >> 4];
    text += digits[digest[i] & 15];
  }
  return text;
}

}  // namespace arenite
