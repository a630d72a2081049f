#include "src/plan/write_file.hpp"

#include <arenite/error.hpp>

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <system_error>

namespace arenite::plan {

void write_file(const std::filesystem::path& file, std::string_view contents) {
  // Distinct for every process and call, so that two writers of one file never mix.
  static std::atomic<unsigned> calls{0};
  std::filesystem::path temporary = file;
  temporary += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(calls++);

  std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
  stream.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  stream.close();
  std::error_code error;
  if (stream) std::filesystem::rename(temporary, file, error);
  if (!stream || error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    fail({.found = "a file that cannot be written" + (error ? ": " + error.message() : ""),
          .expected =
              "a writable folder with room for " + std::to_string(contents.size()) + " bytes",
          .where = file.string()});
  }
}

}  // namespace arenite::plan
