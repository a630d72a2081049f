#include <arenite/error.hpp>

#include "src/io/safetensors.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace arenite::io {
namespace {

struct SafetensorsTest : ::testing::Test {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("safetensors_test." + std::to_string(::getpid()));
  std::filesystem::path path = folder / "model.safetensors";

  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  void put(std::string_view text) const { std::ofstream(path, std::ios::binary) << text; }

  /// A file of this header and data, whatever they say.
  void write(const std::string& header, const std::string& data) const {
    std::string text;
    for (int i = 0; i < 8; ++i) text += static_cast<char>(header.size() >> (8 * i));
    put(text + header + data);
  }

  std::string error() const {
    try {
      const TensorFile file(path);
    } catch (const Error& error) {
      std::string text = error.what();
      const auto at = text.find(path.string());
      return at == std::string::npos ? text : text.replace(at, path.string().size(), "FILE");
    }
    return "no error";
  }

  void save_two() const {
    save_tensors(path, std::vector<NamedTensor>{
                           {"weight", DType::float32, {2, 2}, std::as_bytes(std::span(weight))},
                           {"step", DType::int64, {}, std::as_bytes(std::span(step))},
                           {"none", DType::uint8, {0, 3}, {}}});
  }

  std::vector<float> weight{1, 2, 3, 4};
  std::vector<std::int64_t> step{7};
};

TEST_F(SafetensorsTest, ReadsWhatItWrote) {
  save_two();
  const TensorFile file(path);
  ASSERT_EQ(file.tensors().size(), 3U);
  const NamedTensor* found = file.find("weight");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->type, DType::float32);
  EXPECT_EQ(found->shape, (Shape{2, 2}));
  ASSERT_EQ(found->bytes.size(), 16U);
  EXPECT_EQ(std::memcmp(found->bytes.data(), weight.data(), 16), 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.tensors()[0].bytes.data()) % 64, 0U);
  EXPECT_EQ(file.find("step")->shape, Shape{});
  EXPECT_TRUE(file.find("none")->bytes.empty());
  EXPECT_EQ(file.find("bias"), nullptr);
}

TEST_F(SafetensorsTest, ReadsFilesOfOtherTools) {
  write(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", std::string(4, '\0'));
  EXPECT_EQ(error(), "no error");
}

TEST_F(SafetensorsTest, KeepsWhatIsSaidBesideTensors) {
  const Metadata said{{"run", R"({"epoch": 3, "name": "a \"b\""})"}, {"empty", ""}};
  save_tensors(path, {}, said);
  EXPECT_EQ(TensorFile(path).metadata(), said);
  EXPECT_EQ(*TensorFile(path).said("empty"), "");
  EXPECT_EQ(TensorFile(path).said("none"), nullptr);
}

TEST_F(SafetensorsTest, ReadsFilesOfBeforeWithAHashOfDataAlone) {
  const std::string hash = "e12e115acf4552b2568b55e93cbd39394c4ef81c82447fafc997882a02d23677";
  const auto header = [](const std::string& digits) {
    return R"({"__metadata__":{"format":"arenite","sha256":")" + digits +
           R"("},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  };
  write(header(hash), "ABCD");
  EXPECT_EQ(error(), "no error");
  write(header(hash), "ABCE");
  EXPECT_EQ(error(),
            "FILE: bytes with another SHA-256 than the file says; expected an undamaged file");
}

TEST_F(SafetensorsTest, EveryDamagedByteAndLengthIsFound) {
  save_two();
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(std::string_view(whole).substr(0, size));
    EXPECT_NE(error(), "no error") << size;
  }
  put(whole + "x");
  EXPECT_EQ(error(), "FILE: 25 bytes of data; expected 24, which the header tells of");
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    put(damaged);
    EXPECT_NE(error(), "no error") << "bit " << bit << " of:\n" << whole;
    if (bit / 8 < whole.size() - 24) continue;
    EXPECT_EQ(error(),
              "FILE: bytes with another SHA-256 than the file says; expected an undamaged file");
  }
}

TEST_F(SafetensorsTest, SaysWhatIsWrong) {
  put("short");
  EXPECT_EQ(error(), "FILE: 5 bytes; expected 8 bytes of the header's length first");
  put(std::string(16, '\x7f'));
  EXPECT_EQ(
      error(),
      "FILE: a header of 9187201950435737471 bytes, in a file that has 8 more; expected a whole "
      "safetensors file");
  write("[]", "");
  EXPECT_EQ(error(), "FILE: no object; expected one, with a field a tensor");
  write(std::string(10, '['), "");
  EXPECT_EQ(
      error(),
      "FILE: values nested deeper than 8; expected a header of tensors, which needs 3 levels");
  write(R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})", "ab");
  EXPECT_EQ(error(), "FILE, a.dtype: type 'BF16'; expected F32, F64, I64, I32 or U8");
  write(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "abcd");
  EXPECT_EQ(error(), "FILE, a.data_offsets: 4 bytes; expected 8 for float32 [2]");
  write(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,9]}})", "abcd");
  EXPECT_EQ(error(), "FILE, a.data_offsets[1]: 9; expected an integer from 0 to 4");
  write(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
      "abc");
  EXPECT_EQ(error(),
            "FILE: tensor 'b' at byte 1 of the data; expected it at byte 2, behind the one before");
  write(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,2]}})", "ab");
  EXPECT_EQ(error(), "FILE, a.shape[0]: -1; expected an integer from 0 to 281474976710656");
  std::filesystem::remove(path);
  EXPECT_EQ(error(), "FILE: cannot open it: No such file or directory; expected a readable file");
}

}  // namespace
}  // namespace arenite::io
