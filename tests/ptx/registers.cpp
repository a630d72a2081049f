#include "tests/ptx/registers.hpp"

#include <algorithm>
#include <charconv>

namespace ptx {
namespace {

/// From a register to the next one that was declared with it.
std::uint32_t apart(std::uint8_t bytes) {
  return bytes == 0 ? sizeof(Mask) : std::max(vector_bytes, lanes * std::uint32_t{bytes});
}

}  // namespace

std::uint32_t Registers::bytes() const { return aligned(end_, vector_bytes); }

Register Registers::allocate(std::uint8_t bytes) {
  const Register at = aligned<std::uint32_t>(end_, bytes == 0 ? sizeof(Mask) : vector_bytes);
  end_ = at + apart(bytes);
  return at;
}

void Registers::declare(const std::string& name, std::uint32_t count, std::uint8_t bytes) {
  Declared declared{.first = allocate(bytes), .count = count, .bytes = bytes};
  for (std::uint32_t i = 1; i < count; ++i) allocate(bytes);
  scopes_.back()[name] = declared;
}

Place Registers::constant(std::uint64_t value, std::uint8_t bytes) {
  if (bytes > 0 && bytes < 8) value &= (std::uint64_t{1} << (8 * bytes)) - 1;
  const auto [at, is_new] = constants_.try_emplace({bytes, value}, 0);
  if (is_new) {
    at->second = allocate(bytes);
    entry_.constants.push_back({at->second, bytes, value});
  }
  return {at->second, bytes};
}

std::optional<Place> Registers::find(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  std::uint32_t index = 0;
  const bool fits =
      std::from_chars(name.data() + digits, name.data() + name.size(), index).ec == std::errc();
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto one = scope->find(name); one != scope->end() && one->second.count == 0)
      return Place{one->second.first, one->second.bytes};
    const auto all = scope->find(name.substr(0, digits));
    if (all == scope->end() || !fits || index >= all->second.count) continue;
    const std::uint8_t bytes = all->second.bytes;
    return Place{all->second.first + index * apart(bytes), bytes};
  }
  return find_special(name);
}

std::optional<Place> Registers::find_special(std::string_view name) {
  static const std::map<std::string_view, Special> known{{"%tid.x", Special::thread},
                                                         {"%ctaid.x", Special::block},
                                                         {"%ntid.x", Special::threads},
                                                         {"%nctaid.x", Special::blocks}};
  const auto found = known.find(name);
  if (found == known.end()) return std::nullopt;
  const auto [at, is_new] = entry_.specials.try_emplace(found->second, 0);
  if (is_new) at->second = allocate(sizeof(std::uint32_t));
  return Place{at->second, sizeof(std::uint32_t)};
}

}  // namespace ptx
