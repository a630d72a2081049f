// Who takes whose bytes, where a buffer may leave them and come back.
#pragma once

#include <arenite/plan/plan.hpp>

#include <compare>
#include <cstddef>
#include <vector>

namespace arenite::plan {

/// The piece of a buffer after its first `piece` gaps.
struct BufferPiece {
  std::size_t buffer = 0, piece = 0;

  friend auto operator<=>(const BufferPiece&, const BufferPiece&) = default;
};

/// `next` takes bytes that `previous`, of another buffer, had last.
struct PieceReuse {
  BufferPiece next, previous;

  friend auto operator<=>(const PieceReuse&, const PieceReuse&) = default;
};

/// As find_reuse(), for buffers without aliases. Ascending.
std::vector<PieceReuse> find_piece_reuse(const Plan& plan);

}  // namespace arenite::plan
