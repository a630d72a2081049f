#include <arenite/data/array.hpp>
#include <arenite/error.hpp>

#include "src/base/testing.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::data {
namespace {

struct NpyTest : ::testing::Test {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("npy_test." + std::to_string(::getpid()) + ".npy");

  void TearDown() override { std::filesystem::remove(path); }

  void put(std::string_view text) const { std::ofstream(path, std::ios::binary) << text; }

  static std::string file(const std::string& header, const std::string& data, int version = 1) {
    std::string text = "\x93NUMPY";
    text += static_cast<char>(version);
    text += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
      text += static_cast<char>(header.size() >> (8 * i));
    return text + header + data;
  }

  std::string error(const std::string& header, const std::string& data) const {
    put(file(header, data));
    return error();
  }
  std::string error() const {
    try {
      static_cast<void>(read_npy(path));
    } catch (const Error& error) {
      std::string text = error.what();
      const auto at = text.find(path.string() + ": ");
      return at == std::string::npos ? text : text.erase(at, path.string().size() + 2);
    }
    return "no error";
  }
};

const std::string six = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n";

TEST_F(NpyTest, ReadsArrays) {
  for (const int version : {1, 2, 3}) {
    put(file(six, "abcdef", version));
    const Array array = read_npy(path);
    EXPECT_EQ(array.type, DType::uint8);
    EXPECT_EQ(array.shape, (Shape{2, 3}));
    ASSERT_EQ(array.bytes.size(), 6U);
    EXPECT_EQ(static_cast<char>(array.bytes[5]), 'f');
  }
  put(file("{\"shape\":(),\"fortran_order\":True,\"descr\":'<f8'}", std::string(8, '\0')));
  EXPECT_EQ(read_npy(path).type, DType::float64);
  EXPECT_EQ(read_npy(path).shape, Shape());
  put(file("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 3, 1)}", std::string(12, '\0')));
  EXPECT_EQ(read_npy(path).shape, (Shape{1, 3, 1}));
  put(file("{'descr': '<i8', 'fortran_order': False, 'shape': (0, 3)}", ""));
  EXPECT_EQ(read_npy(path).shape, (Shape{0, 3}));
}

TEST_F(NpyTest, GivesColumnsOfSamplesThatStayWhereTheyAre) {
  // As numpy.save does: elements begin at a multiple of 64 bytes.
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }";
  header.resize(64 * 2 - 10 - 1, ' ');
  header += '\n';
  const std::array<double, 2> numbers{1.5, -2};
  put(file(header, {reinterpret_cast<const char*>(numbers.data()), sizeof numbers}));
  const Array array = read_npy(path);
  const Column column = array.column("price", 0.5);
  EXPECT_EQ(column.input, "price");
  EXPECT_EQ(column.scale, 0.5);
  EXPECT_EQ(static_cast<const double*>(column.data)[1], -2);
  EXPECT_EQ(column.data, array.column("price").data);
  check(Samples{{column}});
}

TEST_F(NpyTest, RefusesOthers) {
  EXPECT_EQ(error("{'descr': '<f2', 'fortran_order': False, 'shape': (2,)}", "abcd"),
            "elements of type \"<f2\"; expected float32, float64, int32, int64 or uint8 of this "
            "processor's order (hint: array.astype(np.float32) makes them such)");
  EXPECT_EQ(error("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", "abcdef"),
            "elements in Fortran's order; expected rows first (hint: np.save(path, "
            "np.ascontiguousarray(array)))");
  EXPECT_EQ(error(six, "abcde"), "5 bytes of elements; expected 6, as its shape says");
  EXPECT_EQ(
      error("{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000, 4000000000)}", ""),
      "a shape of too many elements; expected those of the file");
  EXPECT_EQ(error("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "a"),
            "9 axes; expected at most 8");
  const std::string such =
      "; expected {'descr': '|u1', 'fortran_order': False, 'shape': (3, 28, 28)}, or such";
  EXPECT_EQ(error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "abcd"),
            "elements of several fields" + such);
  EXPECT_EQ(error("{'descr': '|u1', 'shape': (2,)}", "ab"),
            "a header that lacks some of it" + such);
  EXPECT_EQ(error("{'descr': '|u1', 'descr': '|u1'}", "ab"),
            "a header that says something twice" + such);
  EXPECT_EQ(error("{'descr': '|u1', 'fortran_order': False, 'shape': (-2,)}", "ab"),
            "a shape of no sizes" + such);
  EXPECT_EQ(error("{'order': 'C'}", "ab"), "\"order\" in the header" + such);
  EXPECT_EQ(error(six + "x", "abcdef"), "something behind the header" + such);
  put("PK\x03\x04");
  EXPECT_EQ(error(), "a file that begins otherwise; expected an array as numpy.save writes it");
  put("\x93NUMPY");
  EXPECT_EQ(error(), "6 bytes; expected a header");
  put(file(six, "abcdef", 9));
  EXPECT_EQ(error(), "version 9 of the format; expected 1, 2 or 3");
}

// Whatever the bytes, it ends: with an array that its file has, or an error.
TEST_F(NpyTest, StandsAnyBytes) {
  const std::string whole = file(six, "abcdef");
  for (std::size_t length = 1; length < whole.size(); ++length) {
    put(std::string_view(whole).substr(0, length));
    EXPECT_NE(error(), "no error") << length;
  }
  std::mt19937 engine(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (int k = 0; k < 1 + i % 4; ++k) text[engine() % text.size()] = static_cast<char>(engine());
    put(text);
    static_cast<void>(error());
  }
}

}  // namespace
}  // namespace arenite::data
