#include "src/plan/strategies/slots.hpp"

#include <algorithm>
#include <cstddef>

#include "src/plan/strategies/ordered_fit.hpp"

namespace arenite::plan {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);
constexpr std::int64_t any_size = Problem::limit;

struct Slot {
  std::int64_t bytes = 0;
  std::int64_t free_from = 0;        // where time is a line
  std::vector<std::size_t> tenants;  // with a precedence
};

bool is_free(const Instance& instance, const Slot& slot, std::size_t item) {
  if (instance.words == 0) return slot.free_from <= instance.items[item].begin;
  return std::none_of(slot.tenants.begin(), slot.tenants.end(),
                      [&](std::size_t tenant) { return instance.conflict(tenant, item); });
}

std::size_t choose(const Instance& instance, const std::vector<Slot>& slots, std::size_t item,
                   std::int64_t range) {
  const std::int64_t bytes = instance.items[item].bytes;
  const std::int64_t most = bytes > any_size / range ? any_size : bytes * range;
  std::size_t larger = none;
  std::size_t smaller = none;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    const Slot& slot = slots[s];
    if (slot.bytes > most || slot.bytes < bytes / range || !is_free(instance, slot, item)) continue;
    if (slot.bytes >= bytes) {
      if (larger == none || slot.bytes < slots[larger].bytes ||
          (slot.bytes == slots[larger].bytes && slot.free_from < slots[larger].free_from)) {
        larger = s;
      }
    } else if (smaller == none || slot.bytes > slots[smaller].bytes ||
               (slot.bytes == slots[smaller].bytes && slot.free_from > slots[smaller].free_from)) {
      smaller = s;
    }
  }
  return larger != none ? larger : smaller;
}

/// Above each other, and above all fixed items.
std::vector<std::int64_t> stack(const Instance& instance, const Slots& slots) {
  std::vector<std::int64_t> alignment(slots.bytes.size(), 1);
  std::int64_t top = 0;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    const Item& item = instance.items[i];
    if (item.fixed >= 0) {
      top = std::max(top, item.fixed + item.bytes);
    } else {
      alignment[slots.of[i]] = std::max(alignment[slots.of[i]], item.alignment);
    }
  }
  std::vector<std::int64_t> base;
  for (std::size_t s = 0; s < slots.bytes.size(); ++s) {
    base.push_back(round_up(top, alignment[s]));
    top = base.back() + slots.bytes[s];
  }
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    const std::int64_t fixed = instance.items[i].fixed;
    offsets.push_back(fixed >= 0 ? fixed : base[slots.of[i]]);
  }
  return offsets;
}

}  // namespace

Slots assign_slots(const Instance& instance, std::int64_t range) {
  std::vector<Slot> slots;
  Slots result;
  result.of.assign(instance.items.size(), none);
  for (const std::size_t i : in_time(instance)) {
    const Item& item = instance.items[i];
    if (item.fixed >= 0) continue;
    std::size_t s = choose(instance, slots, i, range);
    if (s == none) {
      s = slots.size();
      slots.emplace_back();
    }
    slots[s].bytes = std::max(slots[s].bytes, item.bytes);
    slots[s].free_from = item.end;
    if (instance.words != 0) slots[s].tenants.push_back(i);
    result.of[i] = s;
  }
  for (const Slot& slot : slots) result.bytes.push_back(slot.bytes);
  return result;
}

std::vector<std::int64_t> storage_tokens(const Instance& instance) {
  return stack(instance, assign_slots(instance, 16));
}

std::vector<std::int64_t> linear_scan(const Instance& instance) {
  return stack(instance, assign_slots(instance, any_size));
}

}  // namespace arenite::plan
