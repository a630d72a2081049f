#include <arenite/error.hpp>
#include <arenite/runtime/heap_calls.hpp>

#include "src/base/atomic_file.hpp"
#include "src/base/refuse.hpp"
#include "src/cli/count_heap.hpp"
#include "src/runtime/environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* option = "--count-heap";
constexpr std::string_view library = ARENITE_HEAP_COUNTER;  // empty: this build has none
constexpr const char* begun_again =
    "ARENITE_COUNT_HEAP";  // holds the process's number, which stays

/// Beside the program, as it is built, or where an installation keeps a program's own libraries.
fs::path find_library() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path installed = (folder / "../lib/arenite").lexically_normal();
  for (const fs::path& place : {folder, installed}) {
    std::error_code error;
    if (fs::exists(place / library, error)) return place / library;
  }
  refuse("no " + std::string(library),
         "it in '" + folder.string() + "' or '" + installed.string() + "'", option,
         "it is the build's target arenite_heap_counter");
}

[[noreturn]] void begin_again() {
  std::vector<std::string> texts = runtime::command_line();
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  execv("/proc/self/exe", list.data());
  throw Failure({.found = "the program could not begin again: " + system_reason(),
                 .expected = "the same program with the counter preloaded",
                 .where = option});
}

}  // namespace

void count_heap() {
  const std::string self = std::to_string(getpid());
  const bool again = runtime::environment(begun_again) == self;
  unsetenv(begun_again);
  if (runtime::heap_calls()) return;
  if (library.empty()) {
    refuse("a build with a sanitizer, which has a malloc of its own", "a build without", option,
           "build one, in Arenite's source: scripts/build release");
  }
  const fs::path file = find_library();
  if (file.string().find_first_of(" :") != std::string::npos) {
    refuse("the library '" + file.string() + "'",
           "a path without spaces and colons: LD_PRELOAD divides its list at them", option);
  }
  if (again) {
    throw Failure({.found = "'" + file.string() + "' was not preloaded",
                   .expected = "a system that heeds LD_PRELOAD",
                   .where = option,
                   .hint = "it does not for programs with privileges of their own"});
  }
  // In front: a malloc that is preloaded, too, then serves behind the counter.
  const char* others = std::getenv("LD_PRELOAD");
  setenv("LD_PRELOAD", (file.string() + (others ? std::string(":") + others : "")).c_str(), 1);
  setenv(begun_again, self.c_str(), 1);
  begin_again();
}

}  // namespace arenite::cli
