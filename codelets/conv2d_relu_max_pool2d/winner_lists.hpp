// Lists of the windows that are alive, one an output channel, for the sparse weight gradient.
//
// Gradients and codes lie in memory window by window, all output channels side by side. Blocks of
// 16 windows by 16 channels are transposed in registers and compressed to what is alive.
#pragma once

#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"
#include "codelets/conv2d_relu_max_pool2d/transpose.hpp"

#ifdef ARENITE_AVX512

namespace arenite::codelets::conv2d_relu_max_pool2d::sparse {

constexpr std::int64_t list_capacity = 256;                  ///< windows
constexpr std::int64_t list_stride = list_capacity + lanes;  ///< whole vectors are stored
constexpr std::int64_t lists_bytes = 2 * lanes * list_stride * float_bytes;

/// Living windows of one output channel.
struct List {
  const float* gradient;
  const std::int32_t* offset;  ///< of the winner's first tap in x
  std::int64_t count;
};

/// The lists of 16 output channels, and the windows that are not listed yet.
class WinnerLists {
 public:
  /// In `lists_bytes` of scratch; `mask`: the channels that there are.
  WinnerLists(float* scratch, const std::int32_t* tap_offset, __mmask16 mask)
      : gradients_(scratch),
        offsets_(reinterpret_cast<std::int32_t*>(scratch + lanes * list_stride)),
        tap_offset_(_mm512_load_si512(tap_offset)),
        mask_(mask) {
    clear();
  }

  /// A window; `offset`: where in x the first tap of its first output lies.
  void add(const float* gradient, const std::uint8_t* code, std::int32_t offset) noexcept {
    const __m128i codes = _mm_mask_loadu_epi8(_mm_set1_epi8(static_cast<char>(dead)), mask_, code);
    const __m512 alive = _mm512_maskz_loadu_ps(living(codes), gradient);
    bias_ = _mm512_add_ps(bias_, alive);
    _mm512_store_ps(tile_ + waiting_ * lanes, alive);
    _mm_store_si128(reinterpret_cast<__m128i*>(codes_ + waiting_ * lanes), codes);
    window_offsets_[waiting_++] = offset;
    if (waiting_ == lanes) list_waiting();
  }

  /// Added since the last `clear`, dead ones too; at most `list_capacity`.
  std::int64_t windows() const noexcept { return windows_ + waiting_; }

  /// Lists what waits still.
  void finish() noexcept {
    if (waiting_ == 0) return;
    std::fill(codes_ + waiting_ * lanes, codes_ + lanes * lanes, dead);
    list_waiting();
  }

  void clear() noexcept {
    std::fill_n(counts_, lanes, std::int64_t{0});
    windows_ = 0;
  }

  List operator[](std::int64_t channel) const noexcept {
    return {gradients_ + channel * list_stride, offsets_ + channel * list_stride, counts_[channel]};
  }

  __m512 bias() const noexcept { return bias_; }

 private:
  static __mmask16 living(__m128i codes) noexcept {
    return static_cast<__mmask16>(~_mm_movepi8_mask(codes));
  }

  void list_waiting() noexcept {
    __m512 gradients[lanes];
    transpose(tile_, lanes, gradients);
    transpose(codes_);
    const __m512i windows = _mm512_load_si512(window_offsets_);
#pragma GCC unroll 16
    for (std::int64_t c = 0; c < lanes; ++c) {
      const __m128i codes = _mm_load_si128(reinterpret_cast<const __m128i*>(codes_ + c * lanes));
      const __mmask16 alive = living(codes);
      const __m512i winners = _mm512_maskz_cvtepu8_epi32(0xffff, codes),
                    taps = _mm512_maskz_permutexvar_epi32(0xffff, winners, tap_offset_),
                    offsets = _mm512_add_epi32(windows, taps);
      const std::int64_t at = c * list_stride + counts_[c];
      _mm512_storeu_ps(gradients_ + at, _mm512_maskz_compress_ps(alive, gradients[c]));
      _mm512_storeu_si512(offsets_ + at, _mm512_maskz_compress_epi32(alive, offsets));
      counts_[c] += __builtin_popcount(alive);
    }
    windows_ += waiting_;
    waiting_ = 0;
  }

  float* gradients_;
  std::int32_t* offsets_;
  __m512i tap_offset_;
  __mmask16 mask_;
  __m512 bias_ = _mm512_setzero_ps();
  std::int64_t windows_ = 0;  ///< listed
  std::int64_t waiting_ = 0;
  std::int64_t counts_[lanes];
  alignas(64) float tile_[lanes * lanes] = {};
  alignas(64) std::uint8_t codes_[lanes * lanes];
  alignas(64) std::int32_t window_offsets_[lanes] = {};
};

}  // namespace arenite::codelets::conv2d_relu_max_pool2d::sparse

#endif
