// The IDX reader on hostile bytes, plain and compressed.
// Input: one byte of mode, one byte of rank, then the file.
#include <arenite/data/idx.hpp>

#include "src/data/gzip.hpp"
#include "tests/fuzz/fuzzing.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace {

using namespace arenite;
using Bytes = std::vector<std::uint8_t>;

void require(bool condition) { fuzzing::require(condition, "the reader broke its promise"); }

std::optional<data::IdxView> parse(std::span<const std::uint8_t> file, int rank) {
  std::optional<data::IdxView> view;
  fuzzing::accepted([&] { view = data::parse_idx(file, rank, "fuzz"); });
  return view;
}

std::optional<Bytes> unpack(std::span<const std::uint8_t> packed, int rank) {
  Bytes out;
  const bool whole = fuzzing::accepted([&] {
    data::unpack_idx(packed, rank, "fuzz", [&](std::span<const std::uint8_t> bytes) {
      out.insert(out.end(), bytes.begin(), bytes.end());
      require(out.size() <= packed.size() * 1032 + 1032);
    });
  });
  return whole ? std::optional(std::move(out)) : std::nullopt;
}

void append_member(Bytes& packed, std::span<const std::uint8_t> plain) {
  z_stream stream{};
  require(deflateInit2(&stream, 1, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  Bytes out(deflateBound(&stream, static_cast<uLong>(plain.size())));
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.insert(packed.end(), out.begin(),
                out.begin() + static_cast<std::ptrdiff_t>(stream.total_out));
  deflateEnd(&stream);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const int rank = data[1] % 10;
  const std::span file(data + 2, size - 2);
  switch (data[0] % 3) {
    case 0:
      if (const auto view = parse(file, rank)) {
        require(view->shape.elements() == std::ssize(view->values));
        require(view->values.data() + view->values.size() == file.data() + file.size());
        const bool labels =
            fuzzing::accepted([&] { data::check_labels(view->values, 10, "fuzz"); });
        require(labels == std::all_of(view->values.begin(), view->values.end(),
                                      [](std::uint8_t label) { return label < 10; }));
      }
      break;
    case 1:
      if (const auto plain = unpack(file, rank)) require(parse(*plain, rank).has_value());
      break;
    default: {
      // Compressed in two members, it must be taken exactly when the plain file is, and give its
      // bytes.
      Bytes packed;
      const std::size_t cut = file.size() / 3;
      append_member(packed, file.first(cut));
      append_member(packed, file.subspan(cut));
      const auto plain = unpack(packed, rank);
      require(plain.has_value() == parse(file, rank).has_value());
      if (plain) require(std::equal(plain->begin(), plain->end(), file.begin(), file.end()));
      break;
    }
  }
  return 0;
}
