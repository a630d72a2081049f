// Test support: a folder that is removed afterwards, bytes in and out of files, environment
// variables.
#pragma once

#include <unistd.h>
#include <zlib.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace arenite::data {

using Bytes = std::vector<std::uint8_t>;

class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

/// A test with a folder of its own, whose cache is inside it.
class FolderTest : public ::testing::Test {
 protected:
  FolderTest() : folder_(make()), cache_("ARENITE_CACHE", (folder_ / "cache").string()) {}
  ~FolderTest() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  std::filesystem::path put(const std::string& name, const Bytes& bytes) const {
    std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  static Bytes get(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Regular files below the cache folder.
  std::vector<std::filesystem::path> cached() const {
    std::vector<std::filesystem::path> files;
    if (!std::filesystem::exists(folder_ / "cache")) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "cache")) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }

  std::filesystem::path folder_;

 private:
  static std::filesystem::path make() {
    std::string name = (std::filesystem::temp_directory_path() / "arenite-test-XXXXXX").string();
    return ::mkdtemp(name.data());
  }

  ScopedVariable cache_;
};

/// An IDX file: magic, dimensions, then `values`.
inline Bytes idx_file(const std::vector<std::uint32_t>& dims, const Bytes& values) {
  Bytes file{0, 0, 8, static_cast<std::uint8_t>(dims.size())};
  for (std::uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8)
      file.push_back(static_cast<std::uint8_t>(dim >> shift));
  }
  file.insert(file.end(), values.begin(), values.end());
  return file;
}

/// One gzip member.
inline Bytes gzip(const Bytes& plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + 15, 9, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes packed(deflateBound(&stream, static_cast<uLong>(plain.size())));
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  Bytes result(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(stream.total_out));
  deflateEnd(&stream);
  return result;
}

}  // namespace arenite::data
