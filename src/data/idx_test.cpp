#include <arenite/data/idx.hpp>
#include <arenite/error.hpp>

#include "src/base/testing.hpp"
#include "src/data/test_folder.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace arenite::data {
namespace {

using arenite::testing::error_of;
using IdxTest = FolderTest;

// The action must fail, and say each of `parts`.
void expect_error(const std::function<void()>& action, const std::vector<std::string>& parts) {
  const std::string text = error_of(action);
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin: " << text;
}

Bytes counted(std::size_t size) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  return bytes;
}

TEST_F(IdxTest, ReadsShapeAndValues) {
  const Bytes file = idx_file({2, 3, 4}, counted(24));
  const IdxView view = parse_idx(file, 3, "f");
  EXPECT_EQ(view.shape, Shape({2, 3, 4}));
  EXPECT_TRUE(std::equal(view.values.begin(), view.values.end(), counted(24).begin()));
}

TEST_F(IdxTest, EveryHeaderFieldIsChecked) {
  const Bytes good = idx_file({2, 3, 4}, counted(24));
  const auto broken = [&](std::size_t at, std::uint8_t value) {
    Bytes file = good;
    file[at] = value;
    return [file] { parse_idx(file, 3, "f.idx"); };
  };
  expect_error(broken(0, 1), {"f.idx, byte 0", "0x01", "two zero bytes"});
  expect_error(broken(1, 7), {"f.idx, byte 1", "0x07"});
  expect_error(broken(2, 0x0d), {"f.idx, byte 2", "type code 0x0d", "0x08, unsigned bytes"});
  expect_error(broken(3, 1), {"f.idx, byte 3", "rank 1", "expected rank 3"});
  expect_error(broken(7, 3), {"byte 40", "a file of 40 bytes", "expected 52 bytes", "cut short"});
  expect_error(broken(7, 1), {"byte 28", "expected 28 bytes", "trailing bytes"});
  expect_error(broken(7, 0), {"byte 4", "dimension 0 is 0", "at least 1"});
  expect_error(broken(8, 0xff), {"dimension 1", "elements in all"});
}

TEST_F(IdxTest, NoDimensionsOverflow) {
  for (const std::vector<std::uint32_t>& dims :
       {std::vector<std::uint32_t>{0xffffffff, 0xffffffff, 0xffffffff},
        {0x80000000, 2, 2},
        {65536, 65536, 2}}) {
    expect_error([&] { parse_idx(idx_file(dims, {}), 3, "f"); }, {"elements in all"});
  }
  const std::vector<std::uint32_t> eight(8, 0xffffffff);
  expect_error([&] { parse_idx(idx_file(eight, {}), 8, "f"); }, {"elements in all"});
  expect_error([&] { parse_idx(idx_file({}, {}), 0, "f"); }, {"rank of 0"});
}

TEST_F(IdxTest, EveryTruncationIsAnErrorThatSaysWhere) {
  const Bytes file = idx_file({2, 3, 4}, counted(24));
  for (std::size_t size = 0; size < file.size(); ++size) {
    expect_error([&] { parse_idx(std::span(file).first(size), 3, "f"); },
                 {"byte " + std::to_string(size)});
  }
}

TEST_F(IdxTest, LabelsOutOfRangeAreNamed) {
  const Bytes labels{0, 9, 3, 10, 200};
  check_labels(std::span(labels).first(3), 10, "l");
  expect_error([&] { check_labels(labels, 10, "l"); }, {"l, byte 11", "label 10", "0 to 9"});
}

TEST_F(IdxTest, OpensPlainFiles) {
  const auto path = put("x-idx3-ubyte", idx_file({2, 3, 4}, counted(24)));
  IdxFile file = IdxFile::open(path, 3);
  const IdxFile copy = file;
  file = IdxFile::open(put("y-idx1-ubyte", idx_file({1}, {5})), 1);
  EXPECT_EQ(copy.shape(), Shape({2, 3, 4}));
  EXPECT_EQ(copy.values()[23], 23);
  EXPECT_EQ(file.values()[0], 5);
  EXPECT_TRUE(cached().empty());
}

TEST_F(IdxTest, WhatIsNoDataFileIsRefused) {
  expect_error([&] { IdxFile::open(folder_ / "none", 3); }, {"none", "No such file"});
  expect_error([&] { IdxFile::open(folder_, 3); }, {"a folder; expected a regular file"});
  expect_error([&] { IdxFile::open(put("empty", {}), 3); }, {"the file is empty"});
  expect_error([&] { IdxFile::open("/dev/zero", 3); }, {"a device; expected a regular file"});
  expect_error([&] { IdxFile::open(put("packed", gzip(idx_file({1}, {1}))), 1); }, {"without .gz"});
}

TEST_F(IdxTest, UnpacksOnceAndAgainWhenTheFileChanges) {
  const auto path = put("x.gz", gzip(idx_file({2, 3, 4}, counted(24))));
  EXPECT_EQ(IdxFile::open(path, 3).values()[23], 23);
  ASSERT_EQ(cached().size(), 1u);
  const auto first = cached().front();
  const auto written = std::filesystem::last_write_time(first);
  EXPECT_EQ(IdxFile::open(path, 3).values()[23], 23);
  EXPECT_EQ(std::filesystem::last_write_time(first), written);

  Bytes other = counted(24);
  other[23] = 99;
  const auto time = std::filesystem::last_write_time(path);
  put("x.gz", gzip(idx_file({2, 3, 4}, other)));
  std::filesystem::last_write_time(path, time);  // not even the time betrays the change
  EXPECT_EQ(IdxFile::open(path, 3).values()[23], 99);
  EXPECT_EQ(cached().size(), 2u);
}

TEST_F(IdxTest, ADamagedCacheIsMadeAgain) {
  const auto path = put("x.gz", gzip(idx_file({2, 3, 4}, counted(24))));
  IdxFile::open(path, 3);
  std::filesystem::resize_file(cached().front(), 10);
  EXPECT_EQ(IdxFile::open(path, 3).values()[23], 23);
  // Of the right size, and wrong.
  Bytes changed = get(cached().front());
  changed[20] ^= 1;
  put(std::filesystem::relative(cached().front(), folder_).string(), changed);
  EXPECT_EQ(IdxFile::open(path, 3).values()[4], 4);
  EXPECT_EQ(get(cached().front()), idx_file({2, 3, 4}, counted(24)));
}

TEST_F(IdxTest, ProcessesMayUnpackTheSameFileAtOnce) {
  const Bytes file = idx_file({100, 28, 28}, counted(100 * 28 * 28));
  const auto path = put("x.gz", gzip(file));
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) {
      const IdxFile opened = IdxFile::open(path, 3);
      const auto values = opened.values();
      ::_exit(std::equal(values.begin(), values.end(), file.begin() + 16, file.end()) ? 0 : 1);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(cached().size(), 1u);
}

TEST_F(IdxTest, ACacheThatIsFullyThereNeedNotBeWritable) {
  const auto path = put("x.gz", gzip(idx_file({2, 3, 4}, counted(24))));
  const auto first = IdxFile::open(path, 3);
  ASSERT_EQ(cached().size(), 1u);
  const auto shared = cached().front();
  const auto written = std::filesystem::last_write_time(shared);
  for (const auto& folder : {shared.parent_path(), folder_ / "cache"})
    std::filesystem::permissions(folder, std::filesystem::perms{0555});
  const ScopedVariable temporary("TMPDIR", folder_.string());
  EXPECT_EQ(IdxFile::open(path, 3).values()[23], 23);
  EXPECT_EQ(std::filesystem::last_write_time(shared), written);
  EXPECT_FALSE(
      std::filesystem::exists(folder_ / ("arenite-" + std::to_string(::geteuid())) / "unpacked"));
  for (const auto& folder : {folder_ / "cache", shared.parent_path()})
    std::filesystem::permissions(folder, std::filesystem::perms{0755});
}

TEST_F(IdxTest, ReadsSeveralGzipMembers) {
  const Bytes file = idx_file({2, 3, 4}, counted(24));
  for (std::ptrdiff_t cut : {1, 3, 15, 16, 20}) {
    Bytes packed = gzip({file.begin(), file.begin() + cut});
    const Bytes empty = gzip({}), rest = gzip({file.begin() + cut, file.end()});
    packed.insert(packed.end(), empty.begin(), empty.end());
    packed.insert(packed.end(), rest.begin(), rest.end());
    const IdxFile read = IdxFile::open(put("m.gz", packed), 3);
    EXPECT_TRUE(std::equal(read.values().begin(), read.values().end(), file.begin() + 16));
  }
}

TEST_F(IdxTest, EveryGzipTruncationIsAnErrorThatSaysWhere) {
  const Bytes packed = gzip(idx_file({2, 3, 4}, counted(24)));
  for (std::size_t size = 1; size < packed.size(); ++size) {
    const auto path =
        put("t.gz", Bytes(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size)));
    expect_error([&] { IdxFile::open(path, 3); },
                 {"t.gz, byte " + std::to_string(size), "ends inside gzip member 1"});
  }
  EXPECT_TRUE(cached().empty()) << "half a file in the cache";
}

TEST_F(IdxTest, EveryFlippedByteIsNoticedOrHarmless) {
  const Bytes good = idx_file({2, 3, 4}, counted(24));
  const Bytes packed = gzip(good);
  for (std::size_t at = 0; at < packed.size(); ++at) {
    Bytes broken = packed;
    broken[at] ^= 0x55;
    const auto path = put("b.gz", broken);
    try {
      const IdxFile file =
          IdxFile::open(path, 3);  // gzip's time stamp and system byte mean nothing
      EXPECT_TRUE(std::equal(file.values().begin(), file.values().end(), good.begin() + 16))
          << "byte " << at;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("b.gz, byte "), std::string::npos) << error.what();
    }
  }
}

TEST_F(IdxTest, TrailingBytesAfterGzipAreReported) {
  Bytes packed = gzip(idx_file({2, 3, 4}, counted(24)));
  const std::string end = std::to_string(packed.size());
  for (int i = 0; i < 40; ++i) packed.push_back('x');
  expect_error([&] { IdxFile::open(put("x.gz", packed), 3); }, {"trailing bytes", "byte "});
  EXPECT_TRUE(cached().empty());
}

TEST_F(IdxTest, ADecompressionBombStopsAtWhatItsHeaderPromises) {
  Bytes bomb = idx_file({2, 3, 4}, {});
  bomb.resize(64 << 20);
  const auto path = put("bomb.gz", gzip(bomb));
  expect_error([&] { IdxFile::open(path, 3); },
               {"bomb.gz, byte ", "more than the 40 bytes its header promises"});
  EXPECT_TRUE(cached().empty());
  // One that promises what so few compressed bytes can never hold is refused before any is written.
  expect_error(
      [&] {
        IdxFile::open(put("lie.gz", gzip(idx_file({60000, 200, 200}, {}))), 3);
      },
      {"gzip's limit"});
}

TEST_F(IdxTest, AShortGzipPayloadIsReported) {
  expect_error(
      [&] {
        IdxFile::open(put("s.gz", gzip(idx_file({2, 3, 4}, counted(23)))), 3);
      },
      {"s.gz (unpacked), byte 39", "unpacks to 39 bytes", "expected 40 bytes"});
  expect_error(
      [&] {
        IdxFile::open(put("h.gz", gzip({0, 0, 8, 3, 0})), 3);
      },
      {"(unpacked), byte 5", "16 bytes"});
  expect_error([&] { IdxFile::open(put("l.gz", gzip(idx_file({24}, counted(24)))), 3); },
               {"(unpacked), byte 3", "rank 1"});
}

TEST_F(IdxTest, WritesWhatItReads) {
  const auto path = folder_ / "new" / "deep" / "w-idx3-ubyte";
  write_idx(path, {2, 3, 4}, counted(24));
  EXPECT_EQ(get(path), idx_file({2, 3, 4}, counted(24)));
  EXPECT_EQ(IdxFile::open(path, 3).shape(), Shape({2, 3, 4}));
  expect_error([&] { write_idx(path, {2, 3, 5}, counted(24)); }, {"24 bytes for shape"});
  expect_error([&] { write_idx(folder_ / "z", {0}, {}); }, {"dimension 0"});
  expect_error([&] { write_idx(path / "below-a-file", {1}, counted(1)); }, {"cannot create"});
}

TEST_F(IdxTest, TheCacheIsWhereTheEnvironmentSays) {
  EXPECT_EQ(cache_folder(), folder_ / "cache");
  const ScopedVariable none("ARENITE_CACHE", "");
  const ScopedVariable xdg("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(cache_folder(), "/x/arenite");
  const ScopedVariable relative("XDG_CACHE_HOME", "not/absolute");
  const ScopedVariable home("HOME", "/h");
  EXPECT_EQ(cache_folder(), "/h/.cache/arenite");
  const ScopedVariable homeless("HOME", "");
  EXPECT_NE(cache_folder().string().find("arenite-" + std::to_string(::geteuid())),
            std::string::npos);
}

TEST_F(IdxTest, ACacheThatCannotBeWrittenIsReportedOrReplaced) {
  const auto path = put("x.gz", gzip(idx_file({1}, {7})));
  const auto blocked = put("file", {1}) / "below";
  {
    const ScopedVariable cache("ARENITE_CACHE", blocked.string());
    expect_error([&] { IdxFile::open(path, 1); }, {"ARENITE_CACHE", blocked.string()});
  }
  const ScopedVariable cache("ARENITE_CACHE", "");
  const ScopedVariable xdg("XDG_CACHE_HOME", blocked.string());
  const ScopedVariable temporary("TMPDIR", folder_.string());
  EXPECT_EQ(IdxFile::open(path, 1).values()[0], 7);
  EXPECT_TRUE(
      std::filesystem::exists(folder_ / ("arenite-" + std::to_string(::geteuid())) / "unpacked"));
}

}  // namespace
}  // namespace arenite::data
