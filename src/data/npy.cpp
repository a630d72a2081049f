#include <arenite/data/array.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/refuse.hpp"

namespace arenite::data {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 40;
constexpr std::string_view magic = "\x93NUMPY";

struct Named {
  std::string_view text;
  DType type;
};
constexpr std::array types{Named{"<f4", DType::float32}, Named{"<f8", DType::float64},
                           Named{"<i4", DType::int32}, Named{"<i8", DType::int64},
                           Named{"|u1", DType::uint8}};

/// What a file says may hold anything.
std::string quoted(std::string_view text) {
  return Json(text).dump({.ascii = true, .replace = true});
}

/// Reads the header's dictionary, and nothing behind it but white space.
class Header {
 public:
  Header(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

  void read() {
    expect('{');
    while (!take('}')) {
      const std::string_view key = word();
      expect(':');
      if (key == "descr") {
        set(type_, type());
      } else if (key == "fortran_order") {
        set(fortran_, truth());
      } else if (key == "shape") {
        set(shape_, shape());
      } else {
        wrong(quoted(key) + " in the header");
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ < text_.size()) wrong("something behind the header");
    if (!type_ || !fortran_ || !shape_) wrong("a header that lacks some of it");
  }

  DType type_of() const { return *type_; }
  const std::vector<std::int64_t>& dims() const { return *shape_; }
  bool is_fortran() const { return *fortran_; }

 private:
  [[noreturn]] void wrong(const std::string& found) const {
    refuse(found, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 28, 28)}, or such",
           where_);
  }
  template <class T>
  void set(std::optional<T>& into, T value) const {
    if (into) wrong("a header that says something twice");
    into = std::move(value);
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) wrong("a header without '" + std::string(1, c) + "' where it has to be");
  }
  std::string_view word() {
    skip();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') wrong("a header without a name where one has to be");
    const std::size_t begin = at_ + 1, end = text_.find(quote, begin);
    if (end == text_.npos) wrong("a header with an open name");
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  DType type() {
    skip();
    if (at_ < text_.size() && text_[at_] == '[') wrong("elements of several fields");
    const std::string_view text = word();
    const auto known = std::ranges::find(types, text, &Named::text);
    if (known != types.end()) return known->type;
    refuse("elements of type " + quoted(text),
           "float32, float64, int32, int64 or uint8 of this processor's order", where_,
           "array.astype(np.float32) makes them such");
  }
  bool truth() {
    skip();
    for (const auto& [name, value] :
         {std::pair<std::string_view, bool>("False", false), {"True", true}}) {
      if (!text_.substr(at_).starts_with(name)) continue;
      at_ += name.size();
      return value;
    }
    wrong("a header without an order");
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> dims;
    expect('(');
    while (!take(')')) {
      skip();
      std::int64_t size = -1;
      const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
      const auto [behind, error] = std::from_chars(begin, end, size);
      if (error != std::errc() || size < 0) wrong("a shape of no sizes");
      at_ += static_cast<std::size_t>(behind - begin);
      dims.push_back(size);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return dims;
  }

  std::string_view text_;
  std::string where_;
  std::size_t at_ = 0;
  std::optional<DType> type_;
  std::optional<bool> fortran_;
  std::optional<std::vector<std::int64_t>> shape_;
};

}  // namespace

Array read_npy(const std::filesystem::path& path) {
  const std::string where = path.string();
  Array array;
  const FileBytes file = map_file(path, "an array as numpy.save writes it", most_bytes);
  const std::span<const std::uint8_t> bytes = file.bytes;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::size_t version_at = magic.size(), length_at = version_at + 2;
  if (!text.starts_with(magic))
    refuse("a file that begins otherwise", "an array as numpy.save writes it", where);
  if (bytes.size() < length_at + 4)
    refuse(std::to_string(bytes.size()) + " bytes", "a header", where);
  const int version = bytes[version_at];
  if (version < 1 || version > 3)
    refuse("version " + std::to_string(version) + " of the format", "1, 2 or 3", where);
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | bytes[length_at + i];
  const std::size_t begin = length_at + length_bytes;
  if (length > bytes.size() - begin) {
    refuse("a header of " + std::to_string(length) + " bytes in a file of " +
               std::to_string(bytes.size()),
           "one that is there", where);
  }
  Header header(text.substr(begin, length), where);
  header.read();
  array.type = header.type_of();
  const std::vector<std::int64_t>& dims = header.dims();
  if (dims.size() > static_cast<std::size_t>(Shape::max_rank))
    refuse(std::to_string(dims.size()) + " axes", "at most " + std::to_string(Shape::max_rank),
           where);
  const std::size_t large = static_cast<std::size_t>(
      std::ranges::count_if(dims, [](std::int64_t size) { return size > 1; }));
  if (header.is_fortran() && large > 1) {
    refuse("elements in Fortran's order", "rows first", where,
           "np.save(path, np.ascontiguousarray(array))");
  }
  std::int64_t wanted = size_of(array.type);
  for (const std::int64_t size : dims) {
    if (size > 0 && wanted > most_bytes / size)
      refuse("a shape of too many elements", "those of the file", where);
    wanted *= size;
  }
  const auto left = static_cast<std::int64_t>(bytes.size() - begin - length);
  if (wanted != left) {
    refuse(std::to_string(left) + " bytes of elements",
           std::to_string(wanted) + ", as its shape says", where);
  }
  array.shape = Shape(std::span(dims));
  array.owner = file.owner;
  array.bytes = std::as_bytes(bytes.subspan(begin + length));
  return array;
}

}  // namespace arenite::data
