// What is to be placed: buffers with sizes and times, and which of them may share bytes.
//
//   plan::Problem problem;
//   problem.add({.name = "x", .bytes = 4096, .lifetime = {0, 3}});
//   problem.add({.name = "y", .bytes = 8192, .lifetime = {3, 5}});   // may take x's bytes
//
// Time is either a line (each buffer has a lifetime) or a partial order of the buffers (a
// Precedence), for programs whose tasks run in parallel. Two buffers conflict, and so need bytes of
// their own, iff they live in the same space and neither is before the other. One whose bytes hold
// nothing for a while may have gaps, in which others take them.
//
// Plain values; safe to read from several threads, not to modify from several.
#pragma once

#include <arenite/types.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace arenite::plan {

/// Half-open: the buffer holds its bytes at begin, …, end - 1. The unit is the caller's, usually
/// the position of an op. {0, 0} means "none given".
struct Lifetime {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  friend bool operator==(const Lifetime&, const Lifetime&) = default;
};

struct Buffer {
  std::string name;        ///< unique in its problem; decides every tie
  std::int64_t bytes = 0;  ///< may be 0: then it conflicts with nothing
  Lifetime lifetime;       ///< needed unless the problem has a Precedence
  /// Times within the lifetime at which the bytes hold nothing, so that others may have them:
  /// ascending, apart, and none at either end. They leave the buffer in *pieces*.
  std::vector<Lifetime> gaps;
  std::int64_t alignment = default_alignment;  ///< bytes, a power of two
  Space space;
  Phase phase = Phase::forward;        ///< for reports and pictures
  std::string label;                   ///< class, for pictures: "activation", "gradient", …
  std::optional<std::int64_t> offset;  ///< when set, the buffer's place is given
  /// Buffers with the same alias begin at the same place: views of the same bytes. These are kept
  /// from the first begin to the last end among them, through all gaps. Empty: none.
  std::string alias;

  friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// When a buffer holds its bytes, ascending: the lifetime without the gaps.
std::vector<Lifetime> pieces(const Buffer& buffer);
std::vector<Lifetime> pieces(const Lifetime& lifetime, const std::vector<Lifetime>& gaps);

/// A strict partial order of n buffers as a matrix of bits: before(i, j) says that every access of
/// buffer i happens before the first write of buffer j. Takes n²/8 bytes. Where buffers have gaps,
/// it is one of their pieces.
class Precedence {
 public:
  static constexpr std::size_t max_size = std::size_t{1} << 17;

  Precedence() = default;
  explicit Precedence(std::size_t size);  ///< nothing ordered; throws Error above max_size

  std::size_t size() const noexcept { return size_; }
  bool before(std::size_t i, std::size_t j) const noexcept {
    return (bits_[i * words_ + j / 64] >> (j % 64) & 1) != 0;
  }
  /// Says that i is before j. Throws Error when either index is out of range.
  void set_before(std::size_t i, std::size_t j);
  /// Adds every pair that follows by transitivity. O(n³/64).
  void close();

  /// Bit j of the row is before(i, j); bits past size() are 0.
  std::span<const std::uint64_t> row(std::size_t i) const noexcept {
    return {bits_.data() + i * words_, words_};
  }

 private:
  std::size_t size_ = 0;
  std::size_t words_ = 0;  // of a row
  std::vector<std::uint64_t> bits_;
};

class Problem {
 public:
  /// Sizes, alignments and fixed offsets may sum to at most this many bytes, so that no sum of a
  /// planner can overflow; times lie within ± this.
  static constexpr std::int64_t limit = std::int64_t{1} << 60;

  /// Appends a buffer and returns its index. Throws Error, and changes nothing, on an empty or used
  /// name, a negative size, a lifetime that does not end after it begins (but {0, 0}), gaps that
  /// are empty, not ascending or not within it, an alignment that is no power of two, a negative or
  /// unaligned fixed offset, sums beyond `limit`, or a space that differs from an earlier one in
  /// its capacity only.
  std::size_t add(Buffer buffer);

  /// From now on `precedence`, not the lifetimes, says who may share bytes. It is checked by
  /// validate(): its size must be piece_count(). Lifetimes then serve pictures only; give all or
  /// none.
  void set_precedence(Precedence precedence);

  /// Each space's block is to be a multiple of so many bytes, a power of two; 1 unless this is
  /// called. Peaks and bounds are those of blocks. Throws Error on what is no power of two, or
  /// above `limit`.
  void set_granule(std::int64_t bytes);
  std::int64_t granule() const noexcept { return granule_; }

  std::size_t size() const noexcept { return buffers_.size(); }
  const std::vector<Buffer>& buffers() const noexcept { return buffers_; }
  const Buffer& operator[](std::size_t i) const noexcept { return buffers_[i]; }
  /// Pieces are numbered through: those of buffer 0 in time, then those of buffer 1, … Without gaps
  /// each buffer is one piece.
  std::size_t piece_count() const noexcept { return piece_count_; }
  std::size_t first_piece(std::size_t i) const noexcept { return first_piece_[i]; }
  std::size_t last_piece(std::size_t i) const noexcept {
    return first_piece_[i] + buffers_[i].gaps.size();
  }
  bool has_gaps() const noexcept { return piece_count() != size(); }
  /// Null when time is a line.
  const Precedence* precedence() const noexcept { return precedence_ ? &*precedence_ : nullptr; }

  /// Every access of i happens before the first write of j.
  bool before(std::size_t i, std::size_t j) const noexcept {
    return precedence_ ? precedence_->before(last_piece(i), first_piece(j))
                       : buffers_[i].lifetime.end <= buffers_[j].lifetime.begin;
  }
  /// Same space, and a piece of one and a piece of the other of which neither is before the other;
  /// i and j differ. Knows nothing of aliases.
  bool conflict(std::size_t i, std::size_t j) const noexcept {
    return buffers_[i].space == buffers_[j].space && !before(i, j) && !before(j, i) &&
           (!has_gaps() || pieces_meet(i, j));
  }

  /// What only the whole problem can show; solve() and verify() call it. Throws Error on missing
  /// lifetimes, a precedence of the wrong size, cyclic, not transitive or contradicted by the
  /// lifetimes, on aliases in two spaces or at two fixed offsets, on conflicting buffers whose
  /// fixed offsets overlap, and on gaps among more than Precedence::max_size buffers.
  void validate() const;

 private:
  bool pieces_meet(std::size_t i, std::size_t j) const noexcept;
  void validate_aliases() const;
  void validate_lifetimes() const;
  void validate_precedence() const;
  void validate_fixed() const;

  std::vector<Buffer> buffers_;
  std::vector<std::size_t> first_piece_;  // by buffer
  std::size_t piece_count_ = 0;
  std::optional<Precedence> precedence_;
  std::int64_t granule_ = 1;
  std::unordered_map<std::string, std::size_t> index_by_name_;
  std::map<std::string, Space> space_by_name_;
  std::int64_t total_ = 0;  // bytes and alignments, to keep below `limit`
};

}  // namespace arenite::plan
