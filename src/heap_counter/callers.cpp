#include "src/heap_counter/callers.hpp"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <features.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace arenite::heap_counter {

bool callers_wanted = false;

namespace {

struct Object {
  std::atomic<const void*> begin{nullptr};
  std::atomic<long> calls{0}, in_steps{0};
  std::array<char, 80> name{};  // kept: the object may be gone in the end
};
constinit std::array<Object, 128> objects;
constinit Object others;  // of unknown objects, and beyond the table
constinit std::atomic<bool> under_way{false};

void count(Object& object) {
  object.calls.fetch_add(1, std::memory_order_relaxed);
  if (under_way.load(std::memory_order_relaxed))
    object.in_steps.fetch_add(1, std::memory_order_relaxed);
}

struct Found {
  const void* begin;
  const char* name;
};

Found find(const void* address) {
#if __GLIBC_PREREQ(2, 35)
  dl_find_object object{};  // unlike dladdr it takes no lock
  if (_dl_find_object(const_cast<void*>(address), &object) != 0) return {nullptr, ""};
  return {object.dlfo_map_start, object.dlfo_link_map ? object.dlfo_link_map->l_name : ""};
#else
  Dl_info object{};
  if (dladdr(address, &object) == 0) return {nullptr, ""};
  return {object.dli_fbase, object.dli_fname};
#endif
}

void keep_name(Object& object, const char* path) {
  const char* slash = std::strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  std::strncpy(object.name.data(), *name ? name : "program", object.name.size() - 1);
}

[[gnu::constructor]] void begin() {
  const char* file = std::getenv("ARENITE_HEAP_CALLERS");
  callers_wanted = file && *file;
}

[[gnu::destructor]] void report() {
  if (!callers_wanted) return;
  callers_wanted = false;
  std::FILE* file = std::fopen(std::getenv("ARENITE_HEAP_CALLERS"), "w");
  if (!file) return;
  const auto write = [&](const char* what, std::atomic<long> Object::*calls) {
    std::fprintf(file, "\"%s\": {", what);
    for (const Object& object : objects) {
      if (object.begin.load())
        std::fprintf(file, "\"%s\": %ld, ", object.name.data(), (object.*calls).load());
    }
    std::fprintf(file, "\"others\": %ld}", (others.*calls).load());
  };
  std::fputc('{', file);
  write("process", &Object::calls);
  std::fputs(", ", file);
  write("steps", &Object::in_steps);
  std::fputs("}\n", file);
  std::fclose(file);
}

}  // namespace

void count_caller(const void* address) noexcept {
  const Found found = find(address);
  const std::size_t start = (reinterpret_cast<std::uintptr_t>(found.begin) >> 12) % objects.size();
  for (std::size_t i = 0; found.begin && i < objects.size(); ++i) {
    Object& object = objects[(start + i) % objects.size()];
    const void* known = object.begin.load(std::memory_order_acquire);
    if (!known && object.begin.compare_exchange_strong(known, found.begin)) {
      keep_name(object, found.name);
      known = found.begin;
    }
    if (known != found.begin) continue;
    count(object);
    return;
  }
  count(others);
}

void set_under_way(bool yes) noexcept { under_way = yes; }

}  // namespace arenite::heap_counter
