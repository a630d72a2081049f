// SHA-256 of a stream of bytes, by OpenSSL.
#pragma once

#include <memory>
#include <span>
#include <string>

namespace arenite {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::span<const std::byte> bytes);
  std::string hex();  ///< ends the stream

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace arenite
