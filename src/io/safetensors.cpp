#include "src/io/safetensors.hpp"

#include "src/base/atomic_file.hpp"
#include "src/base/names.hpp"
#include "src/base/refuse.hpp"
#include "src/base/sha256.hpp"
#include "src/plan/json_field.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace arenite::io {
namespace {

constexpr std::size_t length_bytes = 8;
constexpr std::size_t alignment = 64;  ///< of the first tensor, for whoever maps the file
constexpr std::int64_t most_bytes = std::int64_t{1} << 48;
constexpr const char* about_file = "__metadata__";
constexpr const char* format_name = "format";
constexpr const char* own_format = "arenite";
constexpr const char* checksum_name = "checksum";  ///< of header, its own digits being 0, and data
constexpr const char* data_hash_name = "sha256";   ///< of data alone, in older files
constexpr std::string_view no_digits =
    "0000000000000000000000000000000000000000000000000000000000000000";

constexpr Names<DType, 5> type_names{{{DType::float32, "F32"},
                                      {DType::float64, "F64"},
                                      {DType::int64, "I64"},
                                      {DType::int32, "I32"},
                                      {DType::uint8, "U8"}}};

DType type_of(const plan::Field& field) {
  const std::string name = field.text();
  if (const auto type = find_name(name, type_names)) return *type;
  field.wrong("type '" + name + "'", "F32, F64, I64, I32 or U8");
}

std::span<const std::uint8_t> plain(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

/// In whole, with its checksum.
std::string header_of(std::span<const NamedTensor> tensors, const Metadata& metadata) {
  Json header;
  Json& about = header[about_file];
  about[format_name] = own_format;
  about[checksum_name] = no_digits;
  for (const auto& [name, text] : metadata) {
    if (about.find(name) != nullptr || name == data_hash_name)
      refuse("'" + name + "' said beside tensors", "a name that nothing else has");
    about[name] = text;
  }
  std::size_t begin = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::size_t end = begin + tensor.bytes.size();
    header[tensor.name] = {
        {"dtype", name_of(tensor.type, type_names)},
        {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
        {"data_offsets", Json::list(begin, end)}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((alignment - (length_bytes + text.size()) % alignment) % alignment, ' ');
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  for (const NamedTensor& tensor : tensors) hash.update(tensor.bytes);
  return text.replace(text.find(no_digits), no_digits.size(), hash.hex());
}

/// What the header says of one tensor, whose bytes are among `data`.
NamedTensor tensor_of(const std::string& name, const plan::Field& field,
                      std::span<const std::byte> data) {
  NamedTensor tensor{.name = name, .type = type_of(field["dtype"])};
  const plan::Field shape = field["shape"];
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    sizes.push_back(shape[axis].integer(0, most_bytes));
  tensor.shape = Shape(sizes);
  const plan::Field offsets = field["data_offsets"];
  if (offsets.size() != 2) {
    offsets.wrong(std::to_string(offsets.size()) + " numbers", "2: where its bytes begin and end");
  }
  const std::int64_t begin = offsets[std::size_t{0}].integer(0, std::ssize(data));
  const std::int64_t end = offsets[std::size_t{1}].integer(begin, std::ssize(data));
  const std::int64_t bytes = tensor.shape.elements() * size_of(tensor.type);
  if (end - begin != bytes) {
    offsets.wrong(std::to_string(end - begin) + " bytes", std::to_string(bytes) + " for " +
                                                              std::string(to_string(tensor.type)) +
                                                              " " + to_string(tensor.shape));
  }
  tensor.bytes = data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(bytes));
  return tensor;
}

class Reader {
 public:
  Reader(std::span<const std::uint8_t> file, std::string where)
      : file_(file), where_(std::move(where)) {}

  /// Returns whether there was a checksum.
  bool run(std::vector<NamedTensor>& tensors, Metadata& metadata) {
    const std::string_view header = split();
    const Json document = plan::parse_document(header, where_, 3, "a header of tensors");
    const plan::Field root(document, "", where_);
    if (document.get<std::vector<Json::Member>>() == nullptr)
      root.wrong("no object", "one, with a field a tensor");
    for (const auto& [name, value] : document.members()) {
      const plan::Field field(value, name, where_);
      if (name != about_file) {
        tensors.push_back(tensor_of(name, field, data_));
      } else if (value.get<std::vector<Json::Member>>() != nullptr) {
        for (const auto& [key, said] : value.members())
          metadata.emplace_back(key, plan::Field(said, key, where_).text());
      } else {
        field.wrong("no object", "one, with a text a name");
      }
    }
    std::ranges::sort(tensors, {}, [](const NamedTensor& tensor) {
      return std::tuple(tensor.bytes.data(), tensor.bytes.size(), std::string_view(tensor.name));
    });
    check_cover(tensors);
    const bool checked = check_hash(header, metadata);
    const auto is_ours = [](const auto& said) {
      return said.first == checksum_name || said.first == data_hash_name ||
             (said.first == format_name && said.second == own_format);
    };
    std::erase_if(metadata, is_ours);
    return checked;
  }

 private:
  /// The header; leaves the tensors' bytes in `data_`.
  std::string_view split() {
    if (file_.size() < length_bytes) {
      refuse(std::to_string(file_.size()) + " bytes", "8 bytes of the header's length first",
             where_);
    }
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < length_bytes; ++i)
      length |= static_cast<std::uint64_t>(file_[i]) << (8 * i);
    const std::size_t rest = file_.size() - length_bytes;
    if (length > rest) {
      refuse("a header of " + std::to_string(length) + " bytes, in a file that has " +
                 std::to_string(rest) + " more",
             "a whole safetensors file", where_);
    }
    data_ = std::as_bytes(file_.subspan(length_bytes + static_cast<std::size_t>(length)));
    return {reinterpret_cast<const char*>(file_.data()) + length_bytes,
            static_cast<std::size_t>(length)};
  }

  void check_cover(const std::vector<NamedTensor>& tensors) const {
    std::size_t covered = 0;
    for (const NamedTensor& tensor : tensors) {
      if (tensor.bytes.data() != data_.data() + covered) {
        refuse("tensor '" + tensor.name + "' at byte " +
                   std::to_string(tensor.bytes.data() - data_.data()) + " of the data",
               "it at byte " + std::to_string(covered) + ", behind the one before", where_);
      }
      covered += tensor.bytes.size();
    }
    if (covered != data_.size()) {
      refuse(std::to_string(data_.size()) + " bytes of data",
             std::to_string(covered) + ", which the header tells of", where_);
    }
  }

  /// False where there is nothing to check.
  bool check_hash(std::string_view header, const Metadata& metadata) const {
    const auto said = [&](std::string_view name) -> const std::string* {
      const auto found = std::ranges::find(metadata, name, &Metadata::value_type::first);
      return found == metadata.end() ? nullptr : &found->second;
    };
    Sha256 hash;
    const std::string *expected = said(checksum_name), *const format = said(format_name);
    const bool is_ours = format != nullptr && *format == own_format;
    // Others may say something else under the name.
    if (expected != nullptr && (is_ours || expected->size() == no_digits.size())) {
      std::string text(header);
      const std::size_t digits = text.find(*expected);
      if (expected->size() == no_digits.size() && digits != std::string::npos)
        text.replace(digits, no_digits.size(), no_digits);
      hash.update(std::as_bytes(std::span(text)));
    } else if ((expected = said(data_hash_name)) == nullptr) {
      if (!is_ours) return false;  // another tool's
      refuse("no checksum", "one, as all of arenite's files have", where_);
    }
    hash.update(data_);
    if (hash.hex() != *expected)
      refuse("bytes with another SHA-256 than the file says", "an undamaged file", where_);
    return true;
  }

  std::span<const std::uint8_t> file_;
  std::span<const std::byte> data_;
  std::string where_;
};

}  // namespace

void save_tensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                  const Metadata& metadata) {
  const std::string header = header_of(tensors, metadata);
  std::array<std::uint8_t, length_bytes> length{};
  for (std::size_t i = 0; i < length_bytes; ++i)
    length[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(header.size()) >> (8 * i));
  AtomicFile file(path);
  file.write(length);
  file.write(header);
  for (const NamedTensor& tensor : tensors) file.write(plain(tensor.bytes));
  file.commit();
}

TensorFile::TensorFile(const std::filesystem::path& path)
    : file_(map_file(path, "a safetensors file", most_bytes)) {
  has_checksum_ = Reader(file_.bytes, path.string()).run(tensors_, metadata_);
}

const NamedTensor* TensorFile::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(tensors_, name, &NamedTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

const std::string* TensorFile::said(std::string_view name) const noexcept {
  const auto found = std::ranges::find(metadata_, name, &Metadata::value_type::first);
  return found == metadata_.end() ? nullptr : &found->second;
}

}  // namespace arenite::io
